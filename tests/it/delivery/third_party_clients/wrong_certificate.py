"""The Things Network's own Python client, told to trust another certificate than the one that is served.

Told by the environment: DISCOVERY (address), and what GRPC_DEFAULT_SSL_ROOTS_FILE_PATH names.
"""

import os

import grpc
from ttn import DiscoveryClient

try:
    DiscoveryClient(os.environ["DISCOVERY"]).get_all("handler")
    print("it trusts anybody")
except grpc.RpcError as error:
    assert "CERTIFICATE_VERIFY_FAILED" in error.details(), error
    print("done")
