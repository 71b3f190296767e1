#![doc = include_str!("../README.md")]

mod debug;
pub mod rest;
pub mod status;

/// The descriptors of every file in `proto/`, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

// The generated code is documented where its source says something; the lints are for people.
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
    /// Figures that components report about themselves.
    api = "api";
    /// Between routers, brokers and handlers.
    broker = "broker";
    /// Which component serves what, and where.
    discovery = "discovery";
    /// What gateways say about receiving, and are told about sending.
    gateway = "gateway";
    /// Applications, their payload functions and devices.
    handler = "handler";
    /// LoRaWAN frames, devices and addresses.
    lorawan = "lorawan";
    /// What a broker asks of a network server.
    networkserver = "networkserver";
    /// Which protocol a frame speaks.
    protocol = "protocol";
    /// What happened to a message on its way.
    trace = "trace";
}
