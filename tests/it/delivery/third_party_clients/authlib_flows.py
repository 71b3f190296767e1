"""Authlib does the code, refresh and password flows.

Arguments: the address of the account service, the secret of the client, the password of alice.
Prints where a browser must go, and reads where the browser was sent back to.
"""

import sys

from authlib.common.security import generate_token
from authlib.integrations.requests_client import OAuth2Session

base, secret, password = sys.argv[1:]
token_endpoint = f"{base}/users/token"


def check_is_alice(session):
    answer = session.get(f"{base}/api/v2/users/me")
    assert answer.status_code == 200 and answer.json()["username"] == "alice", answer.text


session = OAuth2Session(
    "third-party",
    secret,
    scope="apps profile",
    redirect_uri="https://third-party.example/callback",
    code_challenge_method="S256",
)
verifier = generate_token(48)
url, state = session.create_authorization_url(f"{base}/users/authorize", code_verifier=verifier)
print(url, flush=True)
redirected = sys.stdin.readline().strip()
token = session.fetch_token(
    token_endpoint, authorization_response=redirected, state=state, code_verifier=verifier
)
check_is_alice(session)

fresh = session.refresh_token(token_endpoint)
assert fresh["refresh_token"] != token["refresh_token"]
check_is_alice(session)

session = OAuth2Session("third-party", secret, scope="apps profile")
session.fetch_token(token_endpoint, username="alice", password=password)
check_is_alice(session)
print("done")
