"""`jobset controller`: runs the controller-manager. Flags are those of the original controller where it has them.

Parses and hands over to controller.manager, which is imported only when the command runs.
"""

from typing import Annotated

import typer


def register(root: typer.Typer) -> None:
    root.command("controller")(controller)


def controller(
    kubeconfig: Annotated[
        str | None, typer.Option(help="A kubeconfig. Default: $KUBECONFIG, ~/.kube/config, or the cluster we run in.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="A context of the kubeconfig. Default: its current one.")] = None,
    namespace: Annotated[str | None, typer.Option(help="Reconcile this namespace only. Default: all.")] = None,
    feature_gates: Annotated[str, typer.Option(help="NAME=true,NAME=false over the defaults.")] = "",
    concurrent_reconciles: Annotated[int, typer.Option(help="JobSets reconciled at the same time.")] = 16,
    kube_api_qps: Annotated[float, typer.Option(help="Requests a second, on average.")] = 500.0,
    kube_api_burst: Annotated[int, typer.Option(help="Requests at once.")] = 500,
    health_probe_bind_address: Annotated[
        str, typer.Option(help="HOST:PORT of /healthz and /readyz; 0 for none.")
    ] = ":8081",
    webhook_bind_address: Annotated[
        str, typer.Option(help="HOST:PORT of the admission webhooks; 0 for none. Needs --webhook-cert-dir.")
    ] = "0",
    webhook_cert_dir: Annotated[
        str,
        typer.Option(
            help="A directory with tls.crt and tls.key for the webhooks. They are read again when they change."
        ),
    ] = "",
    metrics_bind_address: Annotated[
        str,
        typer.Option(help="HOST:PORT of /metrics, over HTTPS and only for those whom the cluster lets; 0 for none."),
    ] = ":8443",
    metrics_secure: Annotated[
        str, typer.Option(help="false: plain HTTP for everybody on this machine, on a loopback address only.")
    ] = "true",
    zap_log_level: Annotated[
        str, typer.Option(help="debug, info, warning, error, or a number: above 0 is debug.")
    ] = "info",
    log_format: Annotated[str, typer.Option(help="text or json.")] = "text",
) -> None:
    """Run the controller-manager: it turns JobSets into Jobs, Services, Workloads and PodGroups.

    \b
    Examples:
      jobset controller --feature-gates JobSetWorkloadAwareSchedulingAPI=true
    """
    from pyjobset.controller.manager import main
    from pyjobset.controller.options import Options, address, boolean, log_level, metrics, webhooks
    from pyjobset.objects import features

    options = Options(
        kubeconfig=kubeconfig,
        context=context,
        namespace=namespace,
        features=features.parse(feature_gates),
        concurrent_reconciles=concurrent_reconciles,
        qps=kube_api_qps,
        burst=kube_api_burst,
        health_address=address(health_probe_bind_address, "--health-probe-bind-address"),
        webhooks=webhooks(webhook_bind_address, webhook_cert_dir),
        metrics=metrics(metrics_bind_address, is_secure=boolean(metrics_secure, "--metrics-secure")),
        log_level=log_level(zap_log_level),
        log_format=log_format,
    )
    main(options)
