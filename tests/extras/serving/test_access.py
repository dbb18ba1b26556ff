# Copyright 2026 The electra_tf Authors.
# SPDX-License-Identifier: Apache-2.0
"""The hosts a server answers, the bodies it reads, and its metrics."""

import http.client
import json
import re
import shlex
import socket

import pytest
from prometheus_client.parser import text_string_to_metric_families

from electra_tf.commands import serve
from electra_tf.extras.serving.hosts import HostCheck
from electra_tf.extras.serving.protocol import RequestError
from tests.conftest import ROOT, refused
from tests.extras.serving.conftest import Running

ECHO = {"signature_name": "echo", "instances": ["a"]}
PREDICT = "/v1/models/toy:predict"


def _check(host, addresses, headers, local=None, allowed=()):
    """Return the status of a request; 200 if it is answered."""
    check = HostCheck(allowed)
    check.listen(host, addresses)
    try:
        check.check(headers, local)
    except RequestError as error:
        return error.status
    return 200


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:8501", 200),
        ("127.0.0.1:9000", 200),  # port of a tunnel
        ("localhost:8501", 200),
        ("LocalHost.", 200),
        ("127.0.0.1.evil.example", 421),
        ("evil.example:8501", 421),
        ("localhost.evil.example", 421),
        ("192.168.0.9", 421),
        ("[::1]:8501", 421),
        ("", 400),
        ("localhost:port", 400),
        ("localhost:8501:1", 400),
        ("a@localhost", 400),
        ("[::1", 400),
    ],
)
def test_a_server_on_127_0_0_1_answers_to(header, status):
    assert _check("127.0.0.1", ["127.0.0.1"], [header]) == status


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("10.0.0.7:8501", 200),  # the address that the request reached
        ("localhost", 200),
        ("127.0.0.1", 200),
        ("[::1]", 200),
        ("10.0.0.8", 421),
        ("evil.example", 421),
    ],
)
def test_a_server_on_all_addresses_answers_to(host, header, status):
    assert _check(host, [host], [header], "::ffff:10.0.0.7") == status


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("[2001:DB8:0::1]:80", 200),
        ("[fe80::1%25eth0]", 200),
        ("[2001:db8::2]", 421),
        ("localhost", 421),
    ],
)
def test_ipv6_addresses_are_compared_as_addresses(header, status):
    addresses = ["2001:db8::1", "fe80::1%eth0"]
    assert _check("2001:db8::1", addresses, [header]) == status


@pytest.mark.parametrize(
    ("allowed", "header", "status"),
    [
        ("models.example.org", "Models.Example.org:443", 200),
        ("models.example.org", "example.org", 421),
        ("example.org", "models.example.org", 421),
        ("10.0.0.7", "10.0.0.7:8501", 200),
        ("[2001:db8::1]", "[2001:db8::1]", 200),
        ("2001:db8::1", "[2001:db8::1]:1", 200),
    ],
)
def test_allowed_hosts_are_names_and_addresses(allowed, header, status):
    assert _check("127.0.0.1", [], [header], allowed=[allowed]) == status


@pytest.mark.parametrize(
    "name", ["http://example.org", "example.org:80", "a b", "*", "-x", " "]
)
def test_a_bad_host_name_is_refused_before_the_model_is_loaded(name):
    args = serve.parse_flags(["serve", "absent", f"--allowed_hosts={name}"])
    refused("--allowed_hosts: .* is neither a host name", serve.main, args)


def test_two_headers_are_refused():
    assert _check("127.0.0.1", [], ["127.0.0.1", "evil.example"]) == 400


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics", "/page.json"])
def test_every_path_is_refused_to_other_hosts(toy, path):
    status, answer = toy.ask("GET", path, None, {"Host": "evil.example:80"})
    assert status == 421
    assert "--allowed_hosts=evil.example" in answer["error"]
    assert "127.0.0.1, localhost" in answer["error"]


@pytest.mark.parametrize("host", ["models.example.org", "localhost"])
def test_an_allowed_host_is_answered(start, toy_model, host):
    server = start(toy_model, allowed_hosts=["models.example.org"])
    answer = server.ask("POST", PREDICT, ECHO, {"Host": host})
    assert answer == (200, {"predictions": ["a"]})


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET /healthz HTTP/1.0\r\n\r\n", b"200"),  # HTTP 1.0 has no Host
        ("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", b"400"),
    ],
)
def test_only_http_1_0_may_omit_the_host(toy, head, status):
    with socket.create_connection(("127.0.0.1", toy.port), 20) as client:
        client.sendall(head.encode())
        assert client.recv(100).split()[1] == status


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=UTF-8", 200),
        ("application/json; charset=latin-1", 415),
        ("application/x-www-form-urlencoded", 415),  # curl's default
        ("text/plain", 415),
        ("text/plain; application/json", 415),
        ("", 415),
    ],
)
def test_only_json_is_read(toy, kind, status):
    answer_status, answer = toy.ask(
        "POST", PREDICT, ECHO, {"Content-Type": kind}
    )
    assert answer_status == status
    remedy = "-H 'Content-Type: application/json'"
    assert (remedy in answer.get("error", "")) == (status != 200)


def test_a_body_without_a_type_is_refused(toy):
    connection = http.client.HTTPConnection("127.0.0.1", toy.port, 60)
    connection.request("POST", PREDICT, json.dumps(ECHO))
    response = connection.getresponse()
    assert response.status == 415
    assert "Content-Type is 'none'" in json.loads(response.read())["error"]
    connection.close()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "path", [PREDICT, "/v1/models/toy/versions/10:predict"]
)
def test_predictions_are_requested_by_post_alone(toy, method, path):
    connection = http.client.HTTPConnection("127.0.0.1", toy.port, 60)
    connection.request(method, path)
    response = connection.getresponse()
    assert (response.status, response.headers["Allow"]) == (405, "POST")
    assert "expected POST" in json.loads(response.read())["error"]
    connection.close()


def _read_samples(server):
    """Return a server's metrics: (name, labels) -> value."""
    status, text = server.ask("GET", "/metrics")
    assert status == 200
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


@pytest.fixture(scope="module")
def counted(toy_model):
    """Return the metrics of a server after some requests."""
    server = Running(toy_model)
    assert server.predict(ECHO)[0] == 200
    assert server.predict(ECHO)[0] == 200
    assert server.predict({**ECHO, "instances": ["a", "b", "c"]})[0] == 200
    assert server.predict(b"{")[0] == 400
    assert server.ask("GET", PREDICT)[0] == 405
    assert server.ask("GET", "/nowhere")[0] == 404
    samples = _read_samples(server)
    server.stop()
    return samples


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("electra_tf_requests_total", "200", "predict"), 3),
        (("electra_tf_requests_total", "400", "predict"), 1),
        (("electra_tf_requests_total", "404", "other"), 1),
        (("electra_tf_errors_total", "405", "predict"), 1),
        (("electra_tf_request_seconds_count", "predict"), 5),
        (("electra_tf_batch_rows_count",), 3),
        (("electra_tf_batch_rows_sum",), 5),
        (("electra_tf_batch_requests_sum",), 3),
        (("electra_tf_batch_rows_bucket", "1.0"), 2),
    ],
)
def test_metrics_count_requests_errors_and_batches(counted, key, value):
    assert counted[key] == value


def test_metrics_hold_times_and_no_error_of_status_200(counted):
    assert counted["electra_tf_request_seconds_sum", "predict"] > 0
    assert ("electra_tf_errors_total", "200", "predict") not in counted


def test_clients_add_no_series(start, toy_model):
    server = start(toy_model)
    before = len(_read_samples(server))
    for number in range(3):
        server.ask("GET", f"/nowhere/{number}")
        server.ask(f"BREW{number}", "/healthz")
    assert len(_read_samples(server)) - before < 60


def test_metrics_are_declared_as_prometheus_text(toy):
    connection = http.client.HTTPConnection("127.0.0.1", toy.port, 60)
    connection.request("GET", "/metrics")
    kind = connection.getresponse().headers["Content-Type"]
    connection.close()
    assert kind == "text/plain; version=0.0.4; charset=utf-8"


def _curl_lines(name):
    text = (ROOT / "docs" / name).read_text().replace("\\\n", "")
    return re.findall(r"(?m)^(curl .*)$", text)


BODIES = [
    shlex.split(line)
    for name in ("export.md", "predict.md")
    for line in _curl_lines(name)
    if " -d " in line
]


@pytest.mark.parametrize("command", BODIES, ids=lambda command: command[-1])
def test_a_curl_line_of_the_documents_declares_its_body(command):
    assert "Content-Type: application/json" in command
    json.loads(command[command.index("-d") + 1])


@pytest.mark.parametrize("name", ["export.md", "predict.md"])
def test_the_documents_have_curl_lines(name):
    assert _curl_lines(name)
