"""The trial server's parts: stock PyTorch, or any backend in Python, as the compiler under test.

``assay.stock_server`` is the program; docs/toolbox.md has the protocol. From outside to inside:

    warm_up   loads and compiles once, so that no trial has to
    worker    one per connection: a process per trial, its limits, the answer
    limits    what the process may use, and when its time is over
    trial     what that process does: load, eager, compile, run, backward, compare
    text      reads a repro file
    check     whether a stranger's file may be executed; ``targets`` says what it may call
    settings  PyTorch's configuration, from a request
    accuracy  where and by how much two results differ
    record    the eager value of every node
    cache     inductor's cache, after a trial was killed
    process   killing and measuring processes
    failure   an exception as the report says it; ``wrappers`` knows PyTorch's own around it

    sent_backend   a backend of the user's, by name or by value
    python_trial   what a trial of one does
"""
