//! Many MQTT clients of one application, which are idle after they subscribed.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use client::Trust;
use testing::figures::Figures;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};
use tokio_rustls::TlsConnector;

use crate::{
    SETTINGS,
    process::Usage,
    server_process::{Application, DEVICE, ServerProcess},
};

/// Number of clients that connect at the same time.
const TOGETHER: usize = 64;

/// Time for which the server is observed while its clients are idle.
const IDLE: Duration = Duration::from_secs(5);

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Measures these numbers of clients, each with a server of its own, and the last number also with TLS.
pub(crate) async fn measure(figures: &mut Figures) {
    let numbers =
        std::env::var_os("FOOTPRINT_CLIENTS").map_or("1000,5000,10000".to_owned(), |text| text.into_string().unwrap());
    let numbers: Vec<usize> = numbers.split(',').map(|number| number.parse().unwrap()).collect();
    for number in &numbers {
        let server = ServerProcess::start(SETTINGS).await;
        connect(figures, &server, *number, None).await;
    }
    let address = ServerProcess::free_address();
    let server = ServerProcess::start(&format!("{SETTINGS}broker.tls_listen = '{address}'\n")).await;
    let trust = Trust::Certificate(std::fs::read_to_string(server.dir().join("ca.cert")).unwrap());
    let tls = (address, TlsConnector::from(Arc::new(trust.tls().unwrap())));
    connect(figures, &server, numbers[numbers.len() - 1], Some(tls)).await;
}

async fn connect(
    figures: &mut Figures,
    server: &ServerProcess,
    number: usize,
    tls: Option<(SocketAddr, TlsConnector)>,
) {
    let application = server.create_application("bench-app", ServerProcess::demo_functions()).await;
    let with_tls = if tls.is_some() { " with TLS" } else { "" };
    let before = Usage::of(server);
    figures.add("no clients", before.to_string(), "");
    let (started, cpu) = (Instant::now(), server.cpu_time());
    let (mut clients, mut connecting) = (Vec::with_capacity(number), JoinSet::new());
    for _ in 0..number {
        if connecting.len() == TOGETHER {
            clients.push(connecting.join_next().await.unwrap().unwrap());
        }
        connecting.spawn(subscribe(server.mqtt, tls.clone(), connect_packet(&application)));
    }
    clients.extend(connecting.join_all().await);
    let (took, cpu) = (started.elapsed().as_secs_f64(), (server.cpu_time() - cpu).as_secs_f64());
    let connected = Usage::of(server);
    let what = format!("{number} clients{with_tls}, subscribed");
    figures.add(&what, connected.to_string(), "10,000: ≤ 400 MB, ≤ 2 descriptors each");
    figures.add("of that, each client", connected.per_client(&before, number), "");
    figures.add(
        "they connected and subscribed in",
        format!("{took:.2} s, {cpu:.2} s of processor time"),
        "5,000: ≤ 3 s",
    );
    let cpu = server.cpu_time();
    tokio::time::sleep(IDLE).await;
    let share = (server.cpu_time() - cpu).as_secs_f64() / IDLE.as_secs_f64();
    figures.add("processor time while they are idle", format!("{:.1}%", share * 100.0), "");

    let mut sender = TcpStream::connect(server.handler).await.unwrap();
    sender.write_all(&application.uplink(DEVICE)).await.unwrap();
    for client in &mut clients {
        assert_eq!(packet(client).await >> 4, 3, "every client receives the uplink");
    }
    figures.add("the same, after each received an uplink", Usage::of(server).to_string(), "");
}

/// Connects, and subscribes to all uplinks with QoS 1.
async fn subscribe(address: SocketAddr, tls: Option<(SocketAddr, TlsConnector)>, connect: Vec<u8>) -> Box<dyn Stream> {
    let mut client: Box<dyn Stream> = match tls {
        None => Box::new(TcpStream::connect(address).await.unwrap()),
        Some((address, tls)) => {
            let stream = TcpStream::connect(address).await.unwrap();
            Box::new(tls.connect("localhost".try_into().unwrap(), stream).await.unwrap())
        }
    };
    client.write_all(&connect).await.unwrap();
    client.flush().await.unwrap();
    assert_eq!(packet(&mut client).await, 0x20);
    let filter = b"+/devices/+/up";
    let head = [0x82, filter.len() as u8 + 5, 0, 1, 0, filter.len() as u8];
    client.write_all(&[&head[..], filter, &[1]].concat()).await.unwrap();
    client.flush().await.unwrap();
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
async fn packet(client: &mut impl Stream) -> u8 {
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
