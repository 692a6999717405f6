"""What a page of `cohort view` costs in a browser: script of a frame from Chromium's trace, bytes on the socket, frames drawn.

  pip install websocket-client
  python bench/view/trace_page.py build/release/bin/cohort quadruped-velocity --policy random --n-envs 60

Chromium draws with SwiftShader, on the processor. Times of the script are those of its thread (tdur), which other programs on the
machine do not add to.
"""
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

import websocket

SECONDS = 10


def started(command):
    log = tempfile.NamedTemporaryFile("w+", suffix=".log")
    process = subprocess.Popen(command, stdout=log, stderr=log)
    while process.poll() is None:
        text = open(log.name).read()
        if "Ctrl-C ends it" in text:
            return process, re.search(r"http://\S+", text).group(0)
        time.sleep(0.1)
    sys.exit(open(log.name).read())


class Browser:
    def __init__(self, port=9555):
        self.folder = tempfile.TemporaryDirectory()
        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
             f"--user-data-dir={self.folder.name}", f"--remote-debugging-port={port}", "--remote-allow-origins=*",
             "--window-size=1280,800", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                pages = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
                break
            except OSError:
                time.sleep(0.1)
        page = next(p for p in pages if p["type"] == "page")
        self.socket = websocket.create_connection(page["webSocketDebuggerUrl"])
        self.number, self.events = 0, []

    def ask(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.number:
                return message["result"]
            self.events.append(message)

    def run(self, script):
        return self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)["result"].get("value")

    def until(self, method):
        while not any(e.get("method") == method for e in self.events):
            self.events.append(json.loads(self.socket.recv()))


def main():
    view, address = started([sys.argv[1], "view", *sys.argv[2:]])
    browser = Browser()
    try:
        browser.ask("Network.enable")
        browser.ask("Page.navigate", url=address)
        while not browser.run("!!(window.cohort && window.cohort.ready)"):
            time.sleep(0.2)
        time.sleep(3)
        browser.events.clear()
        before = browser.run("cohort.live.frames")
        drawn = browser.run("(() => { const d = cohort.drawing, draw = d.draw.bind(d); window.drawn = 0;"
                            " d.draw = (...a) => { ++window.drawn; draw(...a); }; return 0; })()")
        browser.ask("Tracing.start", transferMode="ReportEvents",
                    traceConfig={"includedCategories": ["devtools.timeline", "v8"]})
        begin = time.time()
        time.sleep(SECONDS)
        browser.ask("Tracing.end")
        seconds = time.time() - begin
        frames, drawn = browser.run("cohort.live.frames") - before, browser.run("window.drawn")
        groups = browser.run("cohort.drawing.groups.length")
        geoms = browser.run("cohort.drawing.groups.reduce((sum, g) => sum + g.instances, 0)")
        browser.until("Tracing.tracingComplete")
        trace = [t for e in browser.events if e.get("method") == "Tracing.dataCollected" for t in e["params"]["value"]]
        received = sum(len(e["params"]["response"]["payloadData"]) * (0.75 if e["params"]["response"]["opcode"] == 2 else 1)
                       for e in browser.events if e.get("method") == "Network.webSocketFrameReceived")
        tasks = {}
        for t in trace:
            if t.get("ph") == "X" and t["name"] in ("FireAnimationFrame", "FunctionCall", "RunMicrotasks", "MinorGC", "MajorGC"):
                tasks.setdefault(t["name"], []).append(t.get("tdur", t.get("dur", 0)) / 1000)
        print(f"{seconds:.1f} s: {frames} frames came, {drawn} were drawn ({drawn / seconds:.1f} a second)")
        print(f"{geoms} instances in {groups} calls a frame")
        print(f"socket: {received / seconds / 1000:.0f} kB/s")
        for name, times in sorted(tasks.items()):
            print(f"{name}: {len(times)}, {sum(times) / max(1, frames):.2f} ms a frame that came, the longest {max(times):.2f} ms")
    finally:
        browser.process.terminate()
        view.terminate()
        browser.process.wait()
        view.wait()


main()
