"""The mock cluster of librdkafka, and a consumer of all its topics.

Takes commands as lines of JSON, and prints what happens as such. With --tls, clients reach the cluster only through a
port with TLS, where they must log in.
"""

import argparse
import ctypes
import glob
import json
import os
import sys
import threading

import confluent_kafka

import login

PRODUCE = 0


def library():
    """librdkafka itself, because its Python client offers no mock cluster."""
    packages = os.path.dirname(os.path.dirname(confluent_kafka.__file__))
    (path,) = glob.glob(os.path.join(packages, "confluent_kafka.libs", "librdkafka-*"))
    loaded = ctypes.CDLL(path)
    loaded.rd_kafka_conf_new.restype = ctypes.c_void_p
    loaded.rd_kafka_new.restype = ctypes.c_void_p
    loaded.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    loaded.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    return loaded


class Cluster:
    def __init__(self):
        self.library = library()
        error = ctypes.create_string_buffer(512)
        conf = ctypes.c_void_p(self.library.rd_kafka_conf_new())
        handle = ctypes.c_void_p(self.library.rd_kafka_new(0, conf, error, ctypes.c_size_t(512)))
        self.cluster = ctypes.c_void_p(self.library.rd_kafka_mock_cluster_new(handle, 1))
        self.address = self.library.rd_kafka_mock_cluster_bootstraps(self.cluster).decode()

    def call(self, name, *arguments):
        return getattr(self.library, "rd_kafka_mock_" + name)(self.cluster, *arguments)

    def obey(self, command):
        what = command["do"]
        if what == "topic":
            self.call("topic_create", command["name"].encode(), command["partitions"], 1)
        elif what == "down":
            self.call("broker_set_down", 1)
        elif what == "up":
            self.call("broker_set_up", 1)
        elif what == "refuse":
            self.call("push_request_errors", PRODUCE, ctypes.c_size_t(1), command["error"])


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def consume(settings, topics):
    settings = {"group.id": "test", "auto.offset.reset": "earliest", **settings}
    consumer = confluent_kafka.Consumer(settings)
    while True:
        while topics:
            name, partitions = topics.pop()
            start = confluent_kafka.OFFSET_BEGINNING
            wanted = [confluent_kafka.TopicPartition(name, number, start) for number in range(partitions)]
            consumer.incremental_assign(wanted)
        message = consumer.poll(0.1)
        if message is None or message.error():
            continue
        say(
            topic=message.topic(),
            partition=message.partition(),
            key=message.key().decode(),
            value=message.value().decode(),
            headers={name: value.decode() for name, value in message.headers()},
            time=message.timestamp()[1],
        )


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--tls", nargs=3, metavar=("AUTHORITY", "CERTIFICATE", "KEY"))
    tls = arguments.parse_args().tls
    cluster, topics, settings = Cluster(), [], {}
    address = cluster.address
    if tls:
        port = login.serve(cluster.address, tls[1], tls[2])
        address = "localhost:%d" % port
        cluster.call("broker_set_host_port", 1, b"localhost", port)
        settings = {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": tls[0],
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": login.USER,
            "sasl.password": login.PASSWORD,
        }
    settings["bootstrap.servers"] = address
    threading.Thread(target=consume, args=(settings, topics), daemon=True).start()
    say(address=address)
    for line in sys.stdin:
        command = json.loads(line)
        cluster.obey(command)
        if command["do"] == "topic":
            topics.append((command["name"], command["partitions"]))
        say(done=True)
    # Its threads do not end by themselves.
    os._exit(0)


main()
