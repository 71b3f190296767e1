"""Runs an OpenID Connect provider until its input ends.

Prints its issuer. The users 1 and 2 log in there by their subject.
"""

import sys

from oidc_provider_mock import User, run_server_in_thread

alice = {"email": "alice@example.com", "email_verified": True, "preferred_username": "alice"}
bob = {"email": "bob@example.com", "email_verified": True, "preferred_username": "robert"}
users = [User(sub="1", claims=alice), User(sub="2", claims=bob)]
with run_server_in_thread(require_nonce=True, user_claims=users) as server:
    print(f"http://localhost:{server.server_port}", flush=True)
    sys.stdin.read()
