#!/usr/bin/env python3
"""Serves one model file with llama.cpp (inside the xllamacpp package) on a loopback port.

  local_model_server.py --model FILE --url-file FILE [--port 0] [--slots 3] [--ctx 24576] [--threads 1] [--batch-threads 1]

Writes its address into the URL file as soon as the model answers, and runs until SIGTERM or SIGINT.
It speaks /v1/chat/completions (with JSON schemas) and /v1/messages.
"""

import argparse
import os
import signal
import socket
import threading
import time
import urllib.request

import xllamacpp


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--url-file", required=True)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--slots", type=int, default=3, help="requests that are answered at the same time")
    parser.add_argument("--ctx", type=int, default=24576, help="tokens of context, shared out among the slots")
    parser.add_argument("--threads", type=int, default=1, help="for writing; more than one pays off on idle cores only")
    parser.add_argument("--batch-threads", type=int, default=1, help="for reading prompts")
    return parser.parse_args()


def parameters(options):
    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = {"local"}
    params.hostnames = ["127.0.0.1"]
    params.port = options.port or free_port()
    params.n_parallel = options.slots
    params.n_ctx = options.ctx
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.batch_threads
    # Idle threads sleep instead of spinning: claw and its tools run on the same cores.
    params.cpuparams.poll = 0
    params.cpuparams_batch.poll = 0
    params.cache_ram_mib = 512
    # A model this small repeats itself for ever otherwise; these are defaults that a request can change.
    params.sampling.temp = 0.2
    params.sampling.penalty_repeat = 1.3
    params.sampling.dry_multiplier = 0.8
    params.n_predict = 160
    # One paragraph is all that it has to say.
    params.antiprompt = ["\n\n"]
    return params


def wait_until_healthy(url, seconds):
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url + "/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


def main():
    options = arguments()
    done = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    params = parameters(options)
    server = xllamacpp.Server(params)
    url = f"http://127.0.0.1:{params.port}"
    wait_until_healthy(url, 60)
    with open(options.url_file + ".new", "w", encoding="ascii") as file:
        file.write(url + "\n")
    os.replace(options.url_file + ".new", options.url_file)
    done.wait()
    del server
    os.unlink(options.url_file)
    os._exit(0)  # the library's threads hold the interpreter otherwise


main()
