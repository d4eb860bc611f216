"""`jobset controller`: runs the controller-manager. Flags are those of the original controller where it has them.

Reads the Configuration file, puts the flags that were given over it, and hands over to controller.manager, which is
imported only when the command runs.
"""

# ruff: noqa: ARG001  flags of the Configuration are read by their names, with those that were not given left out
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from click.core import ParameterSource
from typer.core import TyperCommand


def register(root: typer.Typer) -> None:
    root.command("controller", cls=_GoCommand)(controller)


class _GoCommand(TyperCommand):
    """Its switches may be written as those of the original controller, which is Go: `--leader-elect=false`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        switches = {p.opts[0]: p.secondary_opts[0] for p in self.params if p.secondary_opts}
        return super().parse_args(ctx, [_spelled(argument, switches) for argument in args])


def _spelled(argument: str, switches: Mapping[str, str]) -> str:
    name, equals, value = argument.partition("=")
    if not equals or name not in switches or value.lower() not in ("true", "false"):
        return argument
    return name if value.lower() == "true" else switches[name]


def controller(
    ctx: typer.Context,
    config: Annotated[
        str, typer.Option(help="A file with a Configuration (config.jobset.x-k8s.io/v1alpha1). Flags go before it.")
    ] = "",
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the Configuration, flags included, and do not run.")
    ] = False,
    kubeconfig: Annotated[
        str | None, typer.Option(help="A kubeconfig. Default: $KUBECONFIG, ~/.kube/config, or the cluster we run in.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="A context of the kubeconfig. Default: its current one.")] = None,
    namespace: Annotated[str | None, typer.Option(help="Reconcile this namespace only. Default: all.")] = None,
    feature_gates: Annotated[str, typer.Option(help="NAME=true,NAME=false over the file and the defaults.")] = "",
    concurrent_reconciles: Annotated[int, typer.Option(help="JobSets reconciled at the same time.")] = 16,
    kube_api_qps: Annotated[float, typer.Option(help="Requests a second, on average.")] = 500.0,
    kube_api_burst: Annotated[int, typer.Option(help="Requests at once.")] = 500,
    leader_elect: Annotated[
        bool,
        typer.Option("--leader-elect/--no-leader-elect", help="Of several replicas one reconciles, by a Lease."),
    ] = False,
    leader_election_namespace: Annotated[
        str, typer.Option(help="Of the Lease. Default: that of the pod, outside of one jobset-system.")
    ] = "",
    health_probe_bind_address: Annotated[
        str, typer.Option(help="HOST:PORT of /healthz and /readyz; 0 for none.")
    ] = ":8081",
    webhook_bind_address: Annotated[
        str,
        typer.Option(
            help="HOST:PORT of the admission webhooks; 0 for none. Outside of a pod it needs --webhook-cert-dir."
        ),
    ] = ":9443",
    webhook_cert_dir: Annotated[
        str,
        typer.Option(
            help="A directory with tls.crt and tls.key for the webhooks, read again when they change. Without one, in "
            "a pod, the controller makes them itself."
        ),
    ] = "",
    metrics_bind_address: Annotated[
        str,
        typer.Option(help="HOST:PORT of /metrics, over HTTPS and only for those whom the cluster lets; 0 for none."),
    ] = ":8443",
    metrics_secure: Annotated[
        str, typer.Option(help="false: plain HTTP for everybody on this machine, on a loopback address only.")
    ] = "true",
    zap_devel: Annotated[
        bool | None,
        typer.Option("--zap-devel/--no-zap-devel", help="Logs for people, from debug on; off: JSON, from info on."),
    ] = None,
    zap_encoder: Annotated[str, typer.Option(help="console (text) or json.")] = "",
    zap_log_level: Annotated[
        str, typer.Option(help="debug, info, warning, error, or a number: above 0 is debug. Default: info.")
    ] = "",
    v: Annotated[
        int, typer.Option("--v", help="As klog's: from 4 on debug. --zap-log-level goes before it.", min=0)
    ] = 0,
    zap_stacktrace_level: Annotated[
        str, typer.Option(help="info, error or panic: from which level on a stack trace is logged.")
    ] = "error",
    zap_time_encoding: Annotated[
        str, typer.Option(help="iso8601, rfc3339, rfc3339nano, epoch, millis or nano.")
    ] = "iso8601",
    log_format: Annotated[str, typer.Option(help="text or json, as --zap-encoder. Default: text.")] = "",
) -> None:
    """Run the controller-manager, which turns JobSets into Jobs.

    A flag that is given goes before the file of --config, and that before the default.

    \b
    Examples:
      jobset controller --feature-gates JobSetWorkloadAwareSchedulingAPI=true
      jobset controller --config controller_manager_config.yaml --kube-api-qps 100
      jobset controller --config controller_manager_config.yaml --print-config
    """
    from pyjobset.cli.output import say, to_yaml
    from pyjobset.controller import configured, options
    from pyjobset.controller.configuration import manifest
    from pyjobset.controller.manager import main
    from pyjobset.kube.cluster import own_namespace

    given = {
        f"--{name.replace('_', '-')}": value
        for name, value in ctx.params.items()
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
    configuration = configured.with_flags(_configuration(config), given)
    if print_config:
        say(to_yaml(manifest(configuration)))
        return
    chosen = configured.options(
        configuration,
        is_metrics_secure=options.boolean(metrics_secure, "--metrics-secure"),
        is_in_pod=kubeconfig is None and own_namespace() != "",
        wants_webhooks=webhook_bind_address not in ("", "0") if "--webhook-bind-address" in given else None,
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        concurrent_reconciles=concurrent_reconciles,
        log_level=options.log_level(zap_log_level or options.klog_level(v, is_devel=zap_devel)),
        log_format=options.log_format(zap_encoder, log_format, is_devel=zap_devel),
        log_time_format=zap_time_encoding,
        log_stack_traces=options.has_stack_traces(zap_stacktrace_level),
    )
    main(chosen)


def _configuration(name: str) -> Any:
    """The Configuration in that file, or the default one. Everything that is wrong is told at once."""
    from dataclasses import replace

    from pyjobset.cli.files import read
    from pyjobset.controller.configuration import API_VERSION, KIND, Configuration
    from pyjobset.controller.configured import parse
    from pyjobset.errors import InvalidSpec, UsageError

    if not name:
        return Configuration()
    found, misfits = read((name,))
    if misfits:
        head = f"begin with apiVersion: {API_VERSION} and kind: {KIND}"
        problems = [
            m.problem if m.problem.code == "manifest-syntax" else replace(m.problem, hint=head) for m in misfits
        ]
        raise InvalidSpec(problems, subject=f"{KIND} {name}")
    if len(found) > 1:
        raise UsageError(f"{name} has {len(found)} documents: {', '.join(f.name for f in found)}", hint="keep one")
    return parse(found[0].manifest, name)
