"""An S3 server with the bucket `history`, in memory, which verifies who asks. Prints its port and an access key.

A line of its input says how it answers requests for a range from then on; it prints the line once that is so. It ends
with its input.
"""

import os
import sys
import threading

# The bucket and the user are made by requests that nobody has signed.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "4"

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server
from werkzeug.wrappers import Response

BUCKET = "history"

app = DomainDispatcherApplication(create_backend_app)
ranges = threading.Condition()
how = "right"


def answer(environ, start_response):
    """Answers as the app does, but for a range as was said."""
    if environ["REQUEST_METHOD"] != "GET" or "HTTP_RANGE" not in environ:
        return app(environ, start_response)
    with ranges:
        ranges.wait_for(lambda: how != "held")
        response = Response.from_app(app, environ, buffered=True)
        if response.status_code == 206:
            change(response, environ["PATH_INFO"].removeprefix(f"/{BUCKET}/"))
    return response(environ, start_response)


def change(response, key):
    global how
    content = response.get_data()
    if how == "whole":
        response.status_code = 200
        del response.headers["content-range"]
        response.set_data(read(key))
    elif how == "short":
        response.set_data(content[: len(content) // 2])
    elif how == "cut":
        response.response = [content[: len(content) // 2]]
        response.headers["connection"] = "close"
    elif how == "rewritten":
        how = "right"
        rewrite(key, read(key))
    elif how == "changed":
        how = "right"
        s3.put_object(Bucket=BUCKET, Key=key, Body=bytes(len(read(key))))
    elif how == "gone":
        how = "right"
        s3.delete_object(Bucket=BUCKET, Key=key)


def read(key):
    return s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()


def rewrite(key, content):
    """Writes an object in parts, whose tag is another than that of one which is written at once."""
    upload = {"Bucket": BUCKET, "Key": key, "UploadId": s3.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]}
    part = s3.upload_part(PartNumber=1, Body=content, **upload)
    s3.complete_multipart_upload(MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}, **upload)


server = make_server("127.0.0.1", 0, answer, threaded=True, request_handler=MotoRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
port = server.server_address[1]
options = {"endpoint_url": f"http://127.0.0.1:{port}", "region_name": "us-east-1"}
nobody = {"aws_access_key_id": "nobody", "aws_secret_access_key": "nothing"}
boto3.client("s3", **options, **nobody).create_bucket(Bucket=BUCKET)
iam = boto3.client("iam", **options, **nobody)
iam.create_user(UserName="airlock")
policy = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'
iam.put_user_policy(UserName="airlock", PolicyName="all", PolicyDocument=policy)
key = iam.create_access_key(UserName="airlock")["AccessKey"]
access = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
s3 = boto3.client("s3", **options, **access)
print(port, key["AccessKeyId"], key["SecretAccessKey"], flush=True)
for line in sys.stdin:
    with ranges:
        how = line.strip()
        ranges.notify_all()
    print(how, flush=True)
