"""PyJWT verifies a token with nothing but what `GET /key` answers.

Arguments: the address of the account service, the token.
"""

import json
import sys
import urllib.request

import jwt

base, token = sys.argv[1:]
document = json.load(urllib.request.urlopen(f"{base}/key"))
claims = jwt.decode(token, document["key"], algorithms=[document["algorithm"]])
assert claims["client"] == "third-party" and "apps" in claims["scope"], claims

header, payload, signature = token.split(".")
forged = f"{header}.{payload}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}"
try:
    jwt.decode(forged, document["key"], algorithms=[document["algorithm"]])
except jwt.InvalidSignatureError:
    print("done")
