"""TLS and SASL in front of the mock cluster, which has neither."""

import base64
import hashlib
import hmac
import os
import socket
import ssl
import struct
import threading

USER, PASSWORD = "airlock", "hush"
API_VERSIONS, HANDSHAKE, AUTHENTICATE = 18, 17, 36
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = ["PLAIN", *HASHES]
REFUSED = 58
ROUNDS = 4096


def serve(cluster, certificate, key):
    """Listens on a port, which it returns, and passes on what clients say once they have logged in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))
    host, port = cluster.split(":")

    def accept():
        while True:
            plain, _ = listener.accept()
            threading.Thread(target=guarded, args=(plain,), daemon=True).start()

    def guarded(plain):
        try:
            client = context.wrap_socket(plain, server_side=True)
            Connection(client, socket.create_connection((host, int(port)))).run()
        except (OSError, EOFError):
            plain.close()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def read(connection):
    def exactly(count):
        data = b""
        while len(data) < count:
            more = connection.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    return exactly(struct.unpack(">i", exactly(4))[0])


def frame(data):
    return struct.pack(">i", len(data)) + data


def text(data):
    data = data.encode()
    return struct.pack(">h", len(data)) + data


class Connection:
    def __init__(self, client, cluster):
        self.client, self.cluster = client, cluster
        self.asked_versions, self.lock = set(), threading.Lock()
        self.mechanism, self.scram, self.is_open = None, None, False

    def run(self):
        threading.Thread(target=self.answers, daemon=True).start()
        try:
            while True:
                self.request(read(self.client))
        finally:
            for end in self.client, self.cluster:
                end.close()

    def answers(self):
        try:
            while True:
                answer = read(self.cluster)
                if struct.unpack(">i", answer[:4])[0] in self.asked_versions:
                    # The cluster does not know that there is a login: two more kinds of requests, in version 0 and 1.
                    count = struct.unpack(">i", answer[6:10])[0]
                    more = struct.pack(">hhhhhh", HANDSHAKE, 0, 1, AUTHENTICATE, 0, 0)
                    answer = answer[:6] + struct.pack(">i", count + 2) + more + answer[10:]
                self.tell(answer)
        except (OSError, EOFError):
            self.client.close()

    def tell(self, data):
        with self.lock:
            self.client.sendall(frame(data))

    def request(self, data):
        kind, version, number, name_length = struct.unpack(">hhih", data[:10])
        body = data[10 + max(name_length, 0) :]
        if kind == HANDSHAKE:
            self.mechanism = body[2:].decode()
            names = struct.pack(">i", len(MECHANISMS)) + b"".join(map(text, MECHANISMS))
            self.tell(struct.pack(">ih", number, 0) + names)
        elif kind == AUTHENTICATE:
            answer = self.authenticate(body[4:])
            code, said = (REFUSED, b"") if answer is None else (0, answer)
            self.tell(struct.pack(">ih", number, code) + text("refused" if code else "") + frame(said))
        elif kind == API_VERSIONS:
            self.asked_versions.add(number)
            self.cluster.sendall(frame(data))
        elif self.is_open:
            self.cluster.sendall(frame(data))
        else:
            raise EOFError

    def authenticate(self, said):
        """What the login is answered; none if it is refused."""
        if self.mechanism == "PLAIN":
            self.is_open = said.split(b"\0")[1:] == [USER.encode(), PASSWORD.encode()]
            return b"" if self.is_open else None
        if self.scram is None:
            first = said.decode().removeprefix("n,,")
            fields = dict(field.split("=", 1) for field in first.split(","))
            salt = os.urandom(16)
            nonce = fields["r"] + base64.b64encode(os.urandom(12)).decode()
            answer = "r=%s,s=%s,i=%d" % (nonce, base64.b64encode(salt).decode(), ROUNDS)
            self.scram = (salt, first + "," + answer)
            return answer.encode()
        salt, so_far = self.scram
        name = HASHES[self.mechanism]
        without_proof, proof = said.decode().rsplit(",p=", 1)
        salted = hashlib.pbkdf2_hmac(name, PASSWORD.encode(), salt, ROUNDS)
        mac = lambda key, what: hmac.new(key, what, name).digest()
        key, everything = mac(salted, b"Client Key"), (so_far + "," + without_proof).encode()
        signature = mac(hashlib.new(name, key).digest(), everything)
        self.is_open = bytes(a ^ b for a, b in zip(key, signature)) == base64.b64decode(proof)
        return b"v=" + base64.b64encode(mac(mac(salted, b"Server Key"), everything)) if self.is_open else None
