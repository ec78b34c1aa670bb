"""What `scripts/fuzz-api` does to each made-up request before it is sent: signs it as whoever calls that route, and lets
about half of them name what exists (a run with a lease, an upload under way, a report that is nearly right), so that they
reach further than the first check. Counts the answers."""

import atexit
import collections
import hashlib
import json
import os
import random
import threading
import urllib.error
import urllib.request
import uuid

import schemathesis

URL = os.environ["FUZZ_URL"]
ADMIN = os.environ["FUZZ_TOKEN"]
PROJECT = os.environ["FUZZ_PROJECT"]
COUNTS = os.environ["FUZZ_COUNTS"]
# Calls with one token before the next is made: some limits are counted by token.
CALLS = {"agent": 200, "upload": 3}
# A claim that waits, holds everything up; some do, a little.
MOST_WAIT_S = 1
RUNNER = {"id": str(uuid.uuid4()), "name": "fuzz", "version": "0", "labels": {}, "projects": [PROJECT]}

ODD = [None, True, -1, 0, 2**63, 2**64, 1e308, 0.1, "", "\0", "x" * 1000, "<b>'; --", [], {}, "1970-01-01T00:00:00Z"]

lock = threading.RLock()
chance = random.Random(int(os.environ["FUZZ_SEED"]))
counts = collections.Counter()
tokens = {}
lease = None


def ask(method, path, body, token):
    """Status and answer of a request of our own."""
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), method=method)
    request.add_header("Content-Type", "application/json")
    request.add_header("Authorization", "Bearer " + token)
    try:
        with urllib.request.urlopen(request, timeout=40) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, None


def read(path):
    request = urllib.request.Request(URL + path, headers={"Authorization": "Bearer " + ADMIN})
    with urllib.request.urlopen(request, timeout=40) as answer:
        return answer.read()


def make(scope):
    """A new token, with its facts."""
    return ask("POST", "/api/v1/tokens", {"name": f"fuzz {scope} {uuid.uuid4()}", "scope": scope}, ADMIN)[1]


def token(scope):
    """One of this scope that is not used up."""
    made, calls = tokens.get(scope, (None, 0))
    if made is None or calls >= CALLS[scope]:
        facts = make(scope)
        OURS.add(facts["id"])
        made, calls = facts["token"], 0
    tokens[scope] = (made, calls + 1)
    return made


def queue():
    revision = {"tag": f"v9.{chance.randrange(1_000_000)}.0"}
    wanted = {"project": PROJECT, "revision": revision, "priority": "pull_request", "run_id": str(uuid.uuid4())}
    ask("POST", "/api/v1/runs", wanted, ADMIN)
    return wanted["run_id"]


def leased():
    """A run that a runner has, and its lease."""
    global lease
    if lease is None:
        queue()
        status, job = ask("POST", "/api/v1/agent/claim", {"runner": RUNNER, "wait_s": 5}, token("agent"))
        lease = (job["run_id"], job["lease"]) if status == 200 else None
    return lease


def begin():
    """An upload that is under way, of a few bytes that are no report."""
    run, content = str(uuid.uuid4()), b"no report"
    wanted = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    ask("PUT", f"/api/v1/uploads/{run}", wanted, tokens["upload"][0])
    return run, content


def ended():
    """A run whose events end."""
    run = queue()
    ask("POST", f"/api/v1/runs/{run}/cancel", {"reason": "no longer wanted"}, ADMIN)
    return run


def nearly(report):
    """The report as another run's, with up to three values that may be wrong."""
    report = json.loads(report)
    report["run_id"] = str(uuid.uuid4())
    for _ in range(chance.randrange(4)):
        at = report
        while True:
            key = chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
            if not (isinstance(at[key], (dict, list)) and at[key]) or chance.random() < 0.1:
                break
            at = at[key]
        at[key] = chance.choice(ODD)
    return report


def prepare(case, path):
    """Lets the request name what exists, where that must be made first."""
    global lease
    body = case.body if isinstance(case.body, dict) else None
    reach = chance.random() < 0.5
    if path == "/api/v1/snapshots" and body is not None and reach:
        case.body = nearly(REPORT)
    elif path == "/api/v1/runs" and body is not None and reach:
        body["project"], body["revision"] = PROJECT, {"tag": f"v8.{chance.randrange(1_000_000)}.0"}
    elif path == "/api/v1/tokens/{id}" and (reach or str(case.path_parameters.get("id")) in OURS):
        case.path_parameters["id"] = make("read")["id"]
    elif path in ("/api/v1/runs/{run}", "/api/v1/runs/{run}/cancel", "/api/v1/runs/{run}/events") and reach:
        case.path_parameters["run"] = queue() if path.endswith("/cancel") else ended()
    elif path == "/api/v1/agent/claim" and body is not None:
        if type(body.get("wait_s")) is int and body["wait_s"] > 0:
            body["wait_s"] = min(body["wait_s"], MOST_WAIT_S if chance.random() < 0.1 else 0)
        if isinstance(body.get("runner"), dict) and reach:
            queue()
            runner = RUNNER | {"id": str(uuid.uuid4())}
            body["runner"] = runner if chance.random() < 0.5 else body["runner"] | {"projects": [PROJECT]}
    elif path.startswith("/api/v1/agent/runs/") and body is not None and reach:
        found = leased()
        if found:
            case.path_parameters["run"], body["lease"] = found
            # A heartbeat on an old lease, and a new one after the end, come by this too.
            lease = None if path.endswith("/end") or chance.random() < 0.1 else lease
    elif path == "/api/v1/uploads/{run}" and case.method == "PATCH" and reach:
        case.path_parameters["run"], content = begin()
        case.headers["Upload-Offset"] = "0"
        case.body = chance.choice([content, content[:4], content + b"."])
    elif path == "/api/v1/uploads/{run}/finish" and reach:
        case.path_parameters["run"], content = begin()
        part = urllib.request.Request(f"{URL}/api/v1/uploads/{case.path_parameters['run']}", content, method="PATCH")
        part.add_header("Content-Type", "application/octet-stream")
        part.add_header("Upload-Offset", "0")
        part.add_header("Authorization", "Bearer " + tokens["upload"][0])
        urllib.request.urlopen(part, timeout=40).close()


# Whoever revokes these, hears 401 from then on.
OURS = {known["id"] for known in json.loads(read("/api/v1/tokens"))}
REPORT = read(f"/api/v1/snapshots/{os.environ['FUZZ_RUN']}/report")


@schemathesis.hook
def before_call(context, case, kwargs):
    path = case.operation.path
    scope = "agent" if "/agent/" in path else "upload" if "/uploads/" in path else None
    with lock:
        case.headers = dict(case.headers or {})
        case.path_parameters = dict(case.path_parameters or {})
        case.headers["Authorization"] = "Bearer " + (token(scope) if scope else ADMIN)
        prepare(case, path)


@schemathesis.hook
def after_call(context, case, response):
    with lock:
        counts[f"{case.operation.method.upper()} {case.operation.path}", response.status_code] += 1
        full = response.status_code == 429 and case.operation.path == "/api/v1/runs"
        if full:
            for run in ask("GET", f"/api/v1/runs?project={PROJECT}&state=queued", None, ADMIN)[1]:
                ask("POST", f"/api/v1/runs/{run['run_id']}/cancel", {"reason": "room for others"}, ADMIN)


@atexit.register
def write():
    with open(COUNTS, "a", encoding="utf-8") as file:
        for (route, status), count in sorted(counts.items()):
            file.write(f"{route}\t{status}\t{count}\n")
