import os, subprocess, sys, time
import subject

calls = []

class Cached:
    def setup_cache(self):
        return {"n": subject.changed(1)}

    def time_of_cache(self, cache):
        subject.same(cache["n"])

class Sizes:
    params = [1, 2]

    def setup(self, n):
        if n == 2:
            raise NotImplementedError
        self.n = n

    def time_same(self, n):
        subject.same(self.n)

def time_changed():
    subject.changed(1)

def time_same():
    subject.same(1)

def track_same():
    return subject.same(1)

def mem_same():
    return [subject.same(1)]

def time_rare():
    calls.append(1)
    if len(calls) < 4:
        # As on a busy machine.
        time.sleep(0.2)
    return same_later() if len(calls) > 8 else 1

def same_later():
    return 1

def time_program():
    subprocess.run([sys.executable, "-c", ""])

def appended(name):
    path = os.path.join(os.path.dirname(subject.__file__), name)
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT))
    return path

def time_reads_what_it_changed():
    open(appended("state")).read()

def time_reads_what_it_made():
    appended("made")
    open(appended("made")).read()

def timeraw_same():
    return "import json"

def time_fails():
    raise LookupError("no such thing")
