//! One client's connection: its greeting, then packets both ways until somebody ends it.

use std::{io, time::Duration};

use mqtt5::{PacketType, types::ReasonCode};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, BufWriter, ReadHalf, WriteHalf},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

use crate::{
    listener::Front,
    connect::Greeting,
    sessions::Place,
    inbound::Rules,
    packet::{ControlPacket, ReadError},
};
use crate::metrics;

/// The largest packet that a client may send.
const PACKET_BYTES_MAX: u32 = 64 * 1024;

/// How long a client may take to say who it is.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// How long a client may leave what it is sent unread.
const WRITE_WAIT: Duration = Duration::from_secs(60);

/// How long the two sides may take to part.
const PART_WAIT: Duration = Duration::from_secs(5);

/// Serves one client from its CONNECT to its end.
pub(crate) async fn serve<S>(front: &Front, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (reader, writer) = tokio::io::split(stream);
    let mut client = Client { reader: BufReader::new(reader), writer: Lane::new(writer) };
    let Some(Some(greeting)) = front.stop.run_until_cancelled(client.greet(front)).await else { return };
    let Some(place) = front.live.enter(greeting.tenant.clone(), greeting.credential.clone()) else {
        return client.refuse(greeting.version(), ReasonCode::QuotaExceeded).await;
    };
    match Relay::open(front, &greeting).await {
        Ok(relay) => relay.run(front, &greeting, client, &place).await,
        Err(error) => {
            tracing::error!(%error, "the MQTT engine does not answer");
            client.refuse(greeting.version(), ReasonCode::ServerUnavailable).await;
        }
    }
}

/// Where packets are written, and whether one is written only in part.
struct Lane<W> {
    writer: BufWriter<W>,
    torn: bool,
}

impl<W: AsyncWrite + Unpin> Lane<W> {
    fn new(writer: W) -> Self {
        Self { writer: BufWriter::new(writer), torn: false }
    }

    /// Writes a packet, and makes sure that it leaves when `last` says that no other follows at once.
    async fn send(&mut self, packet: &ControlPacket, last: bool) -> io::Result<()> {
        self.torn = true;
        packet.write(&mut self.writer).await?;
        self.torn = false;
        if last { self.writer.flush().await } else { Ok(()) }
    }

    /// Writes a last packet, unless it would land in the middle of another, and closes.
    async fn close(&mut self, last: Option<ControlPacket>) {
        let goodbye = async {
            if let Some(packet) = last.filter(|_| !self.torn) {
                packet.write(&mut self.writer).await?;
            }
            self.writer.shutdown().await
        };
        // Whoever left already does not hear it, and need not.
        _ = timeout(PART_WAIT, goodbye).await;
    }
}

struct Client<S> {
    reader: BufReader<ReadHalf<S>>,
    writer: Lane<WriteHalf<S>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// Reads the CONNECT and checks it; none when there is nobody to serve.
    async fn greet(&mut self, front: &Front) -> Option<Greeting> {
        let first = timeout(CONNECT_WAIT, ControlPacket::read(&mut self.reader, PACKET_BYTES_MAX as usize));
        let packet = first.await.ok()?.ok()??;
        if packet.sort() != Some(PacketType::Connect) {
            return None;
        }
        let connect = packet.connect().ok()?;
        let (version, user) = (connect.protocol_version, connect.username.clone());
        match Greeting::check(connect, front.gate.as_ref()).await {
            Ok(greeting) => Some(greeting),
            Err(reason) => {
                // Counted always, shown only when wanted: anybody can cause as many of these as they like.
                tracing::debug!(user = user.as_deref().unwrap_or_default(), ?reason, "MQTT client refused");
                self.refuse(version, reason).await;
                None
            }
        }
    }

    async fn refuse(&mut self, version: u8, reason: ReasonCode) {
        metrics::mqtt_refused();
        self.writer.close(ControlPacket::refusal(version, reason).ok()).await;
    }
}

/// The way between a client and the engine.
struct Relay {
    session: String,
    reader: BufReader<OwnedReadHalf>,
    writer: Lane<OwnedWriteHalf>,
}

/// Why a connection ended.
enum End {
    /// One of the two sides closed it.
    Left,
    /// The client did what it may not.
    Broke(ReasonCode),
    /// What the client showed holds no more.
    Revoked,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Left
    }
}

impl From<ReadError> for End {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(_) => Self::Left,
            error => Self::Broke(error.reason()),
        }
    }
}

impl Relay {
    /// Introduces the client to the engine.
    async fn open(front: &Front, greeting: &Greeting) -> io::Result<Self> {
        let session = greeting.session(&front.salt);
        let packet = greeting.for_engine(session.clone(), front.engine.secret()).map_err(io::Error::other)?;
        let engine = TcpStream::connect(front.engine.address).await?;
        engine.set_nodelay(true)?;
        let (reader, writer) = engine.into_split();
        let mut writer = Lane::new(writer);
        writer.send(&packet, true).await?;
        Ok(Self { session, reader: BufReader::new(reader), writer })
    }

    /// Passes packets until one side ends it, then lets both go.
    async fn run<S>(mut self, front: &Front, greeting: &Greeting, mut client: Client<S>, place: &Place)
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut rules = Rules::new(greeting, front.publishes_per_second_max);
        let end = tokio::select! {
            end = to_engine(&mut client.reader, &mut self.writer, &mut rules) => end,
            end = to_client(&mut self.reader, &mut client.writer, greeting) => end,
            () = place.ended.cancelled() => End::Revoked,
        };
        let version = greeting.version();
        let (for_client, for_engine) = match end {
            End::Left => (None, None),
            End::Broke(reason) => {
                tracing::info!(app_id = %greeting.tenant.app_id, ?reason, "MQTT client cut off");
                (Some(reason), None)
            }
            End::Revoked => (Some(ReasonCode::NotAuthorized), ControlPacket::client_leaves(version).ok()),
        };
        let goodbye = for_client.filter(|_| version >= 5).and_then(|reason| ControlPacket::goodbye(reason).ok());
        client.writer.close(goodbye).await;
        self.writer.close(for_engine).await;
        // Read to the end: a socket closed over unread bytes takes back what was written to it.
        _ = timeout(PART_WAIT, tokio::io::copy(&mut self.reader, &mut tokio::io::sink())).await;
        if matches!(end, End::Revoked) && !self.session.is_empty() {
            front.engine.forget(&self.session).await;
        }
    }
}

async fn to_engine<R, W>(reader: &mut BufReader<R>, engine: &mut Lane<W>, rules: &mut Rules<'_>) -> End
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    loop {
        let packet = match ControlPacket::read(reader, PACKET_BYTES_MAX as usize).await {
            Ok(Some(packet)) => packet,
            Ok(None) => return End::Left,
            Err(error) => return error.into(),
        };
        let packet = match rules.apply(packet).await {
            Ok(packet) => packet,
            Err(reason) => return End::Broke(reason),
        };
        if let Err(error) = engine.send(&packet, reader.buffer().is_empty()).await {
            return error.into();
        }
    }
}

async fn to_client<R, W>(reader: &mut BufReader<R>, client: &mut Lane<W>, greeting: &Greeting) -> End
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut answered = false;
    loop {
        // What the engine sends is bounded by what it was sent.
        let Ok(Some(mut packet)) = ControlPacket::read(reader, usize::MAX).await else { return End::Left };
        if !answered {
            answered = true;
            packet = match greeting.answer(packet, PACKET_BYTES_MAX) {
                Ok(packet) => packet,
                Err(_) => return End::Broke(ReasonCode::UnspecifiedError),
            };
        }
        match timeout(WRITE_WAIT, client.send(&packet, reader.buffer().is_empty())).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return End::Left,
        }
    }
}
