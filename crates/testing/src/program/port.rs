//! Ports of servers that tests stop and start again.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpSocket;

/// The bus of a Redis Cluster listens so many ports above its node.
const BUS_ABOVE: u16 = 10_000;

/// A free port that nothing else gets while its server is away: a socket is bound to it that never listens.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _held: Vec<TcpSocket>,
}

impl Port {
    pub(crate) fn free() -> Self {
        let held = hold(0).expect("some port is free");
        Self { number: held.local_addr().unwrap().port(), _held: vec![held] }
    }

    /// Takes a free port, with the port of its bus; `None` when that is taken.
    pub(crate) fn with_bus() -> Option<Self> {
        let port = Self::free();
        let number = if port.number > u16::MAX - BUS_ABOVE { port.number - 2 * BUS_ABOVE } else { port.number };
        Some(Self { number, _held: vec![hold(number)?, hold(number + BUS_ABOVE)?] })
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

/// A server may bind and listen all the same, because both allow an address to be used again.
fn hold(port: u16) -> Option<TcpSocket> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok()?;
    Some(socket)
}
