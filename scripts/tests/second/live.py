"""A gateway to call, and a server behind it that gives every octet back."""

import base64
import json
import pathlib
import socket
import subprocess
import threading

from program import FULMAR

from . import noise
from .session import Security

NAME = "second"


def key(file, *arguments):
    """The octets of a key that `fulmar keygen` makes: base64, on the only line that is no comment."""
    subprocess.run([FULMAR, "keygen", *arguments, file], check=True, capture_output=True)
    (line,) = (line for line in pathlib.Path(file).read_text().splitlines() if line and not line.startswith("#"))
    return base64.b64decode(line)


class Gateway:
    """A gateway with one peer, which is us; `ours` is what a client needs to call it."""

    def __init__(self, folder, kind, server_port, peer=""):
        folder = pathlib.Path(folder)
        lines = ""
        if kind == "noise":
            secret, theirs = key(folder / "client.key"), noise.public(key(folder / "gateway.key"))
            self.ours = Security("noise", secret, theirs)
            lines = f'private_key_file = "{folder}/gateway.key"\n'
            peer += f'public_key = "{base64.b64encode(noise.public(secret)).decode()}"\n'
        elif kind == "preset":
            self.ours = Security("preset", psk=key(folder / "preset.key", "--preset"))
            lines = f'preset_key_file = "{folder}/preset.key"\n'
        else:
            self.ours = Security("none", label=0)
        file = folder / "gateway.toml"
        file.write_text(f'[gateway]\nname = "gateway"\nlisten = "127.0.0.1:0"\nstate_dir = "{folder}/state"\nlog = "debug"\n'
                        f'[security]\nkind = "{kind}"\n{lines}[[peer]]\nname = "{NAME}"\n{peer}'
                        f'[egress]\nallow = ["127.0.0.1:{server_port}"]\n')
        self.log = folder / "gateway.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([FULMAR, "gateway", "--json", "-c", file], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.log.read_text())
        host, port = json.loads(line)["listening"].rsplit(":", 1)
        self.address = host, int(port)

    def events(self, name):
        """Lines of the log about one event."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [line for line in lines if line.get("event") == name]

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Echo:
    """A TCP server on the loopback."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(client,), daemon=True).start()

    @staticmethod
    def answer(client):
        # Whoever asks may end in the middle.
        try:
            with client:
                while piece := client.recv(65_536):
                    client.sendall(piece)
        except OSError:
            pass

    def close(self):
        self.listener.close()
