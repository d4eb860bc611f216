"""The webhooks' certificates that the controller makes itself. Keeper acts, plan decides, content and trust read."""
