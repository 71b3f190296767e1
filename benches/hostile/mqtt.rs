//! An MQTT client that sends bytes as an attacker wants them.

use std::{io, net::SocketAddr};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::requests::connect_from;

/// A connection to the broker.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
}

impl Client {
    /// Connects from a loopback address of this number; fails unless the broker accepts.
    pub(crate) async fn connect(to: SocketAddr, address: usize, connect: &[u8]) -> io::Result<Self> {
        let mut this = Self { stream: connect_from(address, to).await? };
        this.stream.write_all(connect).await?;
        match this.packet().await? {
            (0x20, body) if body.get(1) == Some(&0) => Ok(this),
            (_, body) => Err(io::Error::other(format!("refused: {body:?}"))),
        }
    }

    /// Reads a packet: its first byte, and what follows its length.
    pub(crate) async fn packet(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let header = self.stream.read_u8().await?;
        let (mut length, mut shift) = (0, 0);
        loop {
            let byte = self.stream.read_u8().await?;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok((header, body))
    }
}

/// A CONNECT of MQTT 4 (3.1.1) or 5. With MQTT 5, a session of `expiry` seconds outlives the connection.
pub(crate) fn connect(version: u8, id: &str, user: &str, password: &str, expiry: u32) -> Vec<u8> {
    let clean = if expiry == 0 { 2 } else { 0 };
    let mut body = [b"\x00\x04MQTT", &[version, 0xc0 | clean, 0, 0][..]].concat();
    if version == 5 {
        let properties = [&[0x11], &expiry.to_be_bytes()[..]].concat();
        body.push(properties.len() as u8);
        body.extend(properties);
    }
    [id, user, password].iter().for_each(|value| body.extend(text(value)));
    packet(0x10, &body)
}

/// A SUBSCRIBE of MQTT 5 to one filter, with QoS 1.
pub(crate) fn subscribe(filter: &str) -> Vec<u8> {
    packet(0x82, &[&[0, 1, 0][..], &text(filter), &[1]].concat())
}

/// A PUBLISH of MQTT 5 with QoS 0 and a topic alias.
pub(crate) fn publish_aliased(topic: &str, alias: u16) -> Vec<u8> {
    let alias = alias.to_be_bytes();
    packet(0x30, &[&text(topic)[..], &[3, 0x23], &alias, b"x"].concat())
}

fn text(value: &str) -> Vec<u8> {
    [&u16::try_from(value.len()).unwrap().to_be_bytes()[..], value.as_bytes()].concat()
}

fn packet(header: u8, body: &[u8]) -> Vec<u8> {
    let (mut packet, mut length) = (vec![header], body.len());
    loop {
        let more = if length > 0x7f { 0x80 } else { 0 };
        packet.push((length & 0x7f) as u8 | more);
        length >>= 7;
        if more == 0 {
            break;
        }
    }
    packet.extend(body);
    packet
}
