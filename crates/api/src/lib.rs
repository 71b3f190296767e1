#![doc = include_str!("../README.md")]

mod abandonment;
mod debug;
pub mod rest;
pub mod status;

/// The descriptors of all files in `proto/`, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

// Documentation comes from the .proto files, and generated code need not pass the lints.
macro_rules! generated {
    ($($(#[doc = $doc:literal])+ $package:ident = $file:literal;)+) => {$(
        $(#[doc = $doc])+
        #[allow(missing_docs, clippy::pedantic, clippy::all, unused_qualifications, rustdoc::all)]
        pub mod $package {
            tonic::include_proto!($file);
        }
    )+};
}

generated! {
    /// Statistics that components report.
    api = "api";
    /// Messages between routers, network brokers and handlers.
    broker = "broker";
    /// Device profiles and devices, as ChirpStack 4 serves them.
    chirpstack = "chirpstack/api";
    /// Finding and changing devices, and moving them between applications.
    device = "device";
    /// Which component serves what, and where.
    discovery = "discovery";
    /// The downlink queues of devices.
    downlink = "downlink";
    /// Metadata of reception and transmission by gateways.
    gateway = "gateway";
    /// Applications, their payload functions and devices.
    handler = "handler";
    /// The messages of an application that were kept.
    history = "history";
    /// LoRaWAN frames, devices and addresses.
    lorawan = "lorawan";
    /// Messages between network brokers and network servers.
    networkserver = "networkserver";
    /// Protocol-specific parts of messages.
    protocol = "protocol";
    /// The trace of a message through the network.
    trace = "trace";
    /// Many simulated uplinks at once.
    uplink = "uplink";
    /// The versions of payload functions.
    version = "version";
}

/// The events of ChirpStack 4: protocol buffers in its Redis stream, and JSON over MQTT.
pub mod chirpstack_events {
    /// The events.
    #[allow(missing_docs, clippy::pedantic, clippy::all, unused_qualifications, rustdoc::all)]
    pub mod integration {
        tonic::include_proto!("chirpstack/chirpstack.integration");
        include!(concat!(env!("OUT_DIR"), "/chirpstack/chirpstack.integration.serde.rs"));
    }

    /// The parts of them about gateways, modulation and keys.
    #[allow(missing_docs, clippy::pedantic, clippy::all, unused_qualifications, rustdoc::all)]
    pub mod gw {
        tonic::include_proto!("chirpstack/chirpstack.gw");
        include!(concat!(env!("OUT_DIR"), "/chirpstack/chirpstack.gw.serde.rs"));
    }
}
