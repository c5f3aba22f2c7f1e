"""What the process of one trial does. It says before each step which one that is."""

from __future__ import annotations

import torch

from assay.stock import check, failure, sent_backend, settings, text
from assay.stock.after_aot import AfterAot
from assay.stock.after_dynamo import AfterDynamo
from assay.stock.program import Request, Trial, sentence
from assay.stock.report import Enough, Invalid, Report, invalid_if_it_fails
from assay.stock.stage import Stage


def run(request: Request, fd: int) -> int:
    """Carry out one request; returns the process's exit code."""
    report = Report(fd, request.get("until") or "")
    loaded: text.ReproText | None = None
    try:
        report.stage(Stage.LOAD)
        with invalid_if_it_fails():
            trial = _load(request, report)
        loaded = trial.text
        if request.get("task", "test") == "record":
            report.stage(Stage.EAGER)
            with invalid_if_it_fails():
                trial.record()
        else:
            difference = trial.test()
            if difference is not None:
                report.add(
                    status="failed",
                    type="AccuracyError",
                    message=sentence(difference),
                    accuracy=difference,
                )
                return 1
    except Enough:
        pass
    except Invalid as error:
        cause = error.__cause__ or error
        report.add(status="invalid", **failure.describe(cause, loaded))
        return 1
    except Exception as error:
        report.add(status="failed", **failure.describe(error, loaded))
        return 1
    report.add(status="passed")
    return 0


def _threads(request: Request) -> int:
    return int(request.get("threads") or 1)


def _load(request: Request, report: Report) -> Trial:
    setup = request.get("setup") or ""
    if isinstance(setup, list):
        setup = "\n".join(setup)
    torch.set_num_threads(_threads(request))  # the server has started none, so this process may
    loaded = text.read(request["file"])
    if setup:
        settings.do_not_reuse_graphs()
    elif not sent_backend.is_live():  # then the graph is that process's own
        check.check(loaded)
    settings.apply(request.get("config") or [], is_trusted=bool(setup))
    names = text.execute(loaded, setup)
    if sent_backend.is_live():
        text.add_modules(loaded, names)
    return _kind_of(loaded)(request, report, loaded, names)


def _kind_of(loaded: text.ReproText) -> type[Trial]:
    if sent_backend.is_loaded():
        from assay.stock.python_trial import PythonTrial

        return PythonTrial
    if loaded.stage == "after_dynamo" and loaded.is_only_for_backends:
        from assay.stock.python_trial import BackendTrial

        return BackendTrial
    return AfterDynamo if loaded.stage == "after_dynamo" else AfterAot
