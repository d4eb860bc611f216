"""What people type: one module a command, and what the commands share."""
