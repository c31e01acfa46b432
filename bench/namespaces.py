"""Network namespaces for the programs of the folders beside this file."""

import ctypes
import os
import subprocess
import threading

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000


class Failure(Exception):
    """A command that has failed, or a result that differs from the expected one."""


def run(*words, text=None):
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Namespace:
    def __init__(self, name):
        self.name = f"{name}-{os.getpid()}"
        run("ip", "netns", "add", self.name)
        self.run("ip", "link", "set", "lo", "up")

    def run(self, *words, text=None):
        return run("ip", "netns", "exec", self.name, *words, text=text)

    def start(self, *words, **options):
        return subprocess.Popen(("ip", "netns", "exec", self.name, *words), **options)

    def enter(self, work):
        """Result of work in the namespace, by a thread of its own."""
        result, fault = [], []

        def inside():
            try:
                with open(f"/run/netns/{self.name}", "rb") as file:
                    if LIBC.setns(file.fileno(), CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                result.append(work())
            except Exception as error:
                fault.append(error)

        thread = threading.Thread(target=inside)
        thread.start()
        thread.join()
        if fault:
            raise fault[0]
        return result[0]

    def delete(self):
        subprocess.run(("ip", "netns", "del", self.name), check=False)
