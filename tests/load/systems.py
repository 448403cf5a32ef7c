"""What is compared: no proxy at all, nginx, the gateway, and its peers, all in front of the same mock replicas."""

import json
import os
import shutil
import socket
import sys
import urllib.error
import urllib.request

import peers
from processes import Process

REPLICA_PORTS = [19101, 19102, 19103, 19104]
GATEWAY_PORT, GATEWAY_ADMIN_PORT, NGINX_PORT = 19200, 19290, 19201

# Two workers as the gateway has two threads here, connections kept in both directions, nothing logged, answers
# passed on as they come: what a careful operator would write in front of an engine.
NGINX = """
daemon off; worker_processes {cpus}; pid {dir}/nginx.pid; error_log {dir}/nginx.err warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  client_max_body_size 64m; client_body_buffer_size 1m; keepalive_requests 100000000;
  upstream replicas {{ {servers} keepalive 128; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://replicas; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }}
  }}
}}
"""

GATEWAY = """
listen = "127.0.0.1:{port}"
admin_listen = "127.0.0.1:{admin}"
{replicas}
"""

QUESTION = json.dumps({
    "model": "mock-model", "max_tokens": 5, "messages": [{"role": "user", "content": "[[S:0]] hello"}]}).encode()


def fetch(url, body=None):
    """Status and body of an answer; the status of a refusal too."""
    request = urllib.request.Request(url, data=body, headers={"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError as error:
        return None, str(error).encode()


def replica(path):
    """What the mock replicas say at `path`; they answer as one."""
    status, body = fetch(f"http://127.0.0.1:{REPLICA_PORTS[0]}{path}")
    if status != 200:
        sys.exit(f"the mock replicas answered {path} with {status}: {body.decode(errors='replace')}")
    return json.loads(body)


def ports_must_be_free():
    """Ends the program if something listens already: it would be measured in place of what is started."""
    for port in [*REPLICA_PORTS, GATEWAY_PORT, GATEWAY_ADMIN_PORT, NGINX_PORT, *peers.ports()]:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                sys.exit(f"port {port} is taken, maybe by an earlier run; end what listens there (ss -ltnp) and run again")


def start_replicas(bin_dir, scratch):
    """The mock replicas, one process for all."""
    mock = Process([bin_dir / "mock-upstream", *REPLICA_PORTS], scratch / "mock-upstream.log")
    url = f"http://127.0.0.1:{REPLICA_PORTS[0]}/health"
    return mock.wait_until(lambda: fetch(url)[0] == 200, "mock-upstream")


def start_nginx(scratch, cpus):
    """nginx, round robin."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        sys.exit("nginx is not installed: `apt-get install nginx-light`, or leave it out with `--systems direct,gateway`")
    config = scratch / "nginx.conf"
    servers = " ".join(f"server 127.0.0.1:{port};" for port in REPLICA_PORTS)
    config.write_text(NGINX.format(dir=scratch, cpus=cpus, servers=servers, port=NGINX_PORT))
    return answering(Process([program, "-e", "stderr", "-c", config], scratch / "nginx.log"), "nginx", NGINX_PORT)


def start_gateway(bin_dir, scratch):
    """The gateway with its defaults."""
    config = scratch / "gateway.toml"
    replicas = "\n".join(
        f'[[replicas]]\nname = "replica-{i}"\nurl = "http://127.0.0.1:{port}"' for i, port in enumerate(REPLICA_PORTS))
    config.write_text(GATEWAY.format(port=GATEWAY_PORT, admin=GATEWAY_ADMIN_PORT, replicas=replicas))
    argv = [bin_dir / "gateway", "serve", "--config", config]
    return answering(Process(argv, scratch / "gateway.log"), "gateway", GATEWAY_PORT)


def start(system, bin_dir, scratch):
    """What stands between clients and replicas in `system`."""
    if system == "nginx":
        return start_nginx(scratch, os.cpu_count())
    if system == "gateway":
        return start_gateway(bin_dir, scratch)
    return answering(peers.start(system, REPLICA_PORTS, scratch), system, peers.port(system))


def answering(process, name, port):
    """`process`, once it passes a question on."""
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    return process.wait_until(lambda: fetch(url, QUESTION)[0] == 200, name)


def ports(system):
    """The ports that the load goes to."""
    own = {"direct": REPLICA_PORTS, "nginx": [NGINX_PORT], "gateway": [GATEWAY_PORT]}
    return own.get(system) or [peers.port(system)]


def targets(system):
    """The addresses that the load goes to."""
    return ",".join(f"127.0.0.1:{port}" for port in ports(system))
