"""An S3 server with the bucket `history`, in memory, which verifies who asks. Prints its port and an access key."""

import os
import threading

# The bucket and the user are made by requests that nobody has signed.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "4"

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
options = {
    "endpoint_url": f"http://127.0.0.1:{port}",
    "region_name": "us-east-1",
    "aws_access_key_id": "nobody",
    "aws_secret_access_key": "nothing",
}
boto3.client("s3", **options).create_bucket(Bucket="history")
iam = boto3.client("iam", **options)
iam.create_user(UserName="airlock")
policy = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'
iam.put_user_policy(UserName="airlock", PolicyName="all", PolicyDocument=policy)
key = iam.create_access_key(UserName="airlock")["AccessKey"]
print(port, key["AccessKeyId"], key["SecretAccessKey"], flush=True)
threading.Event().wait()
