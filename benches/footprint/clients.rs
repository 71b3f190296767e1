//! Many MQTT clients of one application.

use std::net::SocketAddr;

use testing::figures::Figures;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    process::Usage,
    server_process::{Application, ServerProcess},
};

/// How many clients connect at the same time.
const TOGETHER: usize = 64;

pub(crate) async fn connect(figures: &mut Figures, server: &ServerProcess) {
    let clients_max =
        std::env::var_os("FOOTPRINT_CLIENTS").map_or(10_000, |text| text.to_str().unwrap().parse().unwrap());
    let application = server.create_application("bench-app", ServerProcess::demo_functions()).await;
    let before = Usage::of(server);
    let (mut clients, mut connecting) = (Vec::with_capacity(clients_max), JoinSet::new());
    for _ in 0..clients_max {
        if connecting.len() == TOGETHER {
            clients.push(connecting.join_next().await.unwrap().unwrap());
        }
        connecting.spawn(subscribe(server.mqtt, connect_packet(&application)));
    }
    clients.extend(connecting.join_all().await);
    let connected = Usage::of(server);
    figures.add(&format!("{clients_max} clients, subscribed"), connected.to_string(), "≤ 600 MB, ≤ 2 descriptors each");
    figures.add("of that, each client", connected.per_client(&before, clients_max), "");

    let mut sender = TcpStream::connect(server.handler).await.unwrap();
    sender.write_all(&application.uplink).await.unwrap();
    for client in &mut clients {
        assert_eq!(packet(client).await >> 4, 3, "every client receives the uplink");
    }
    figures.add("the same, after each received an uplink", Usage::of(server).to_string(), "≤ 600 MB");
}

async fn subscribe(address: SocketAddr, connect: Vec<u8>) -> TcpStream {
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(&connect).await.unwrap();
    assert_eq!(packet(&mut client).await, 0x20);
    let filter = b"+/devices/+/up";
    let head = [0x82, filter.len() as u8 + 5, 0, 1, 0, filter.len() as u8];
    client.write_all(&[&head[..], filter, &[0]].concat()).await.unwrap();
    assert_eq!(packet(&mut client).await, 0x90);
    client
}

/// A CONNECT of MQTT 3.1.1 with a clean session.
fn connect_packet(application: &Application) -> Vec<u8> {
    let mut body = b"\x00\x04MQTT\x04\xc2\x00\x00".to_vec();
    for text in ["", &application.id, &application.key] {
        body.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        body.extend(text.as_bytes());
    }
    [&[0x10, u8::try_from(body.len()).ok().filter(|length| *length < 128).unwrap()][..], &body].concat()
}

/// Reads a packet; returns its first byte.
async fn packet(client: &mut TcpStream) -> u8 {
    let header = client.read_u8().await.unwrap();
    let (mut length, mut shift) = (0, 0);
    loop {
        let byte = client.read_u8().await.unwrap();
        length |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    client.read_exact(&mut vec![0; length]).await.unwrap();
    header
}
