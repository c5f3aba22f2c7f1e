"""``assay diagnose script.py``: PyTorch's troubleshooting guide as one command.

The driver (no PyTorch in its process) decides what to run next; a server that has PyTorch loaded
forks a process for every run of the script, and the trials of ``assay reduce``.

    command     the command line
    procedure   the guide's steps, from the first run to the verdict
    client      the driver's side of the server: start it, ask it to run something
    outcome     how a run of the script ended, and whether two runs did the same
    output      whether two runs printed the same
    ladder      the rungs, and the stage that each one adds
    accuracy    which captured graph computes something else than eager
    exceptions  eager raises, and the compiled script does not
    reduction   ``assay reduce`` on a captured graph
    follow_up   what is asked about the result: stage, pass, setting that avoids it
    whole_script  what is asked of the script where no graph shows the failure
    shrink      a script made smaller on its syntax tree, for failures that have no graph
    edits       the ways in which ``shrink`` makes it smaller
    directory   the result directory: what was done so far, so that a second start goes on
    report      the bug report
    progress    what the user sees meanwhile

    server      the process that forks runs
    script      what a run does: the script, unchanged, with hooks below it
    hooks       where the script's graphs are compiled and called
    captured    writes each graph with its inputs as it is compiled
    custom_operators  the lines that a graph's file needs for operators of the script's own
"""
