import ast, io, os, sys, traceback
asked = os.fdopen(os.dup(0), "rb")
nothing = os.open(os.devnull, os.O_RDONLY)
os.dup2(nothing, 0)
os.close(nothing)
mark = sys.argv[1]
del sys.argv[1]
names = {"__name__": "__main__", "__builtins__": __builtins__}


def evaluate(code):
    tree = ast.parse(code, "<repl>", "exec")
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, "<repl>", "exec"), names)
    if last is not None:
        value = eval(compile(last, "<repl>", "eval"), names)
        if value is not None:
            names["_"] = value
            print(repr(value))


while True:
    length = asked.readline()
    if not length:
        break
    word = "ok"
    try:
        evaluate(asked.read(int(length)).decode("utf-8", "replace"))
    except SystemExit:
        raise
    except BaseException as error:
        word = "error"
        shown = traceback.TracebackException.from_exception(error)
        shown.stack = traceback.StackSummary.from_list(
            [frame for frame in shown.stack if frame.filename != "<string>"])
        sys.stderr.write("".join(shown.format()))
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except Exception:
        pass
    os.write(2, (mark + "\n").encode())
    os.write(1, (mark + word + "\n").encode())
