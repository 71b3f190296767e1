//! One client's connection: its CONNECT, then packets in both directions until one side closes.

mod packet_writer;

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use mqtt5::{PacketType, types::ReasonCode};
use server::status::ErrorChain;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, BufReader, DuplexStream, ReadHalf, WriteHalf},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use self::packet_writer::{CLOSE_WAIT, PacketWriter};
use crate::{
    Authenticator,
    connect::{Connect, ConnectError},
    connect_limits::ConnectLimits,
    engine::{Engine, PACKET_BYTES_MAX},
    inbound::Inbound,
    metrics,
    packet::{ControlPacket, ReadError, SessionFate},
    sessions::{SessionGuard, Sessions},
};

/// Maximum size of a packet that a client may send, in bytes.
const CLIENT_PACKET_BYTES_MAX: u32 = 64 * 1024;

/// Maximum size of a packet from the engine, in bytes: the largest that it accepts, and what it may add to the
/// properties.
const ENGINE_PACKET_BYTES_MAX: usize = PACKET_BYTES_MAX + 1024;

/// How much is read from a client at once, unless a packet is larger. Small, because most clients are idle.
const READ_BYTES: usize = 1024;

/// How long a client may take to send its CONNECT.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// How long a write to a client may block.
const WRITE_WAIT: Duration = Duration::from_secs(60);

/// What all connections share.
pub(crate) struct ConnectionContext {
    pub(crate) authenticator: Arc<dyn Authenticator>,
    pub(crate) connect_limits: ConnectLimits,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) engine: Engine,
    /// Makes session names unpredictable.
    pub(crate) salt: [u8; 16],
    pub(crate) publishes_per_second_max: u32,
    pub(crate) stop: CancellationToken,
}

/// A client that has connected.
pub(crate) struct Client<S> {
    reader: BufReader<ReadHalf<S>>,
    writer: PacketWriter<WriteHalf<S>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn new(stream: S) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self { reader: BufReader::with_capacity(READ_BYTES, reader), writer: PacketWriter::new(writer, WRITE_WAIT) }
    }

    /// Serves the client from its CONNECT until it disconnects.
    pub(crate) async fn serve(mut self, context: &ConnectionContext, peer: IpAddr) {
        // In a box, because it is large and over soon.
        let connect = Box::pin(self.connect(context, peer));
        let Some(Some(connect)) = context.stop.run_until_cancelled(connect).await else { return };
        let Some(session) = context.sessions.open(connect.permissions.clone(), connect.credential.clone()) else {
            return self.refuse(connect.version(), &ReasonCode::QuotaExceeded.into()).await;
        };
        match EngineConnection::open(context, &connect).await {
            Ok(engine) => engine.proxy(context, &connect, self, &session).await,
            Err(error) => {
                tracing::error!(%error, "the MQTT engine does not accept a connection");
                self.refuse(connect.version(), &ReasonCode::ServerUnavailable.into()).await;
            }
        }
    }

    /// Reads and checks the CONNECT; returns nothing if the client was refused.
    async fn connect(&mut self, context: &ConnectionContext, peer: IpAddr) -> Option<Connect> {
        let first = timeout(CONNECT_WAIT, ControlPacket::read(&mut self.reader, CLIENT_PACKET_BYTES_MAX as usize));
        let packet = first.await.ok()?.ok()??;
        if packet.packet_type() != Some(PacketType::Connect) {
            return None;
        }
        let packet = packet.connect().ok()?;
        let (version, user) = (packet.protocol_version, packet.username.clone());
        match Connect::check(packet, peer, &context.connect_limits, context.authenticator.as_ref()).await {
            Ok(connect) => Some(connect),
            Err(error) => {
                // Only logged at debug level, because anybody can cause any number of these.
                tracing::debug!(user = user.as_deref().unwrap_or_default(), ?error, "refused an MQTT client");
                self.refuse(version, &error).await;
                None
            }
        }
    }

    async fn refuse(&mut self, version: u8, error: &ConnectError) {
        metrics::refused();
        self.writer.close(ControlPacket::refusal(version, error.reason, error.text.as_deref()).ok()).await;
    }
}

struct EngineConnection {
    session_id: String,
    reader: ReadHalf<DuplexStream>,
    writer: PacketWriter<WriteHalf<DuplexStream>>,
}

/// Why a connection ended.
enum End {
    /// The client or the engine closed it.
    Closed,
    /// The client violated the protocol or a limit.
    Violation(ReasonCode),
    /// The client's credential is no longer valid.
    Revoked,
    /// The client's credential has not been confirmed for too long. Its session stays.
    Unconfirmed,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

impl From<ReadError> for End {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(_) => Self::Closed,
            error => Self::Violation(error.reason()),
        }
    }
}

impl EngineConnection {
    async fn open(context: &ConnectionContext, connect: &Connect) -> io::Result<Self> {
        let session_id = connect.session_id(&context.salt);
        let packet = connect.for_engine(session_id.clone(), context.engine.secret()).map_err(io::Error::other)?;
        let stream = context.engine.connect().ok_or(io::ErrorKind::NotConnected)?;
        let (reader, writer) = tokio::io::split(stream);
        // The engine takes as long as it needs to route what it reads.
        let mut writer = PacketWriter::new(writer, Duration::MAX);
        writer.write(&packet).await?;
        Ok(Self { session_id, reader, writer })
    }

    /// Proxies packets until one side closes or the session is revoked, then closes both.
    async fn proxy<S>(
        mut self,
        context: &ConnectionContext,
        connect: &Connect,
        mut client: Client<S>,
        session: &SessionGuard,
    ) where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut inbound = Inbound::new(connect, context.publishes_per_second_max);
        let end = tokio::select! {
            end = to_engine(&mut client.reader, &mut self.writer, &mut inbound) => end,
            end = to_client(&mut self.reader, &mut client.writer, connect) => end,
            () = session.revoked.cancelled() => End::Revoked,
            () = session.unconfirmed.cancelled() => End::Unconfirmed,
        };
        let version = connect.version();
        let (for_client, for_engine) = match end {
            End::Closed => (None, None),
            End::Violation(reason) => {
                tracing::info!(app_id = %connect.permissions.app_id, ?reason, "disconnected an MQTT client");
                (Some(reason), None)
            }
            End::Revoked => {
                (Some(ReasonCode::NotAuthorized), ControlPacket::client_disconnect(version, SessionFate::Ends).ok())
            }
            End::Unconfirmed => {
                (Some(ReasonCode::ServerBusy), ControlPacket::client_disconnect(version, SessionFate::Stays).ok())
            }
        };
        let disconnect =
            for_client.filter(|_| version >= 5).and_then(|reason| ControlPacket::server_disconnect(reason).ok());
        client.writer.close(disconnect).await;
        self.writer.close(for_engine).await;
        // Read to the end: an engine that cannot write what it has for the client no longer reads what the client sent.
        _ = timeout(CLOSE_WAIT, read_to_end(&mut self.reader)).await;
        if matches!(end, End::Revoked) && !self.session_id.is_empty() {
            context.engine.delete_session(&self.session_id).await;
        }
    }
}

async fn to_engine<R, W>(reader: &mut R, engine: &mut PacketWriter<W>, inbound: &mut Inbound<'_>) -> End
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    loop {
        let packet = match engine.flush_before(from_client(reader, inbound)).await {
            Ok(Ok(packet)) => packet,
            Ok(Err(end)) => return end,
            Err(error) => return error.into(),
        };
        if let Err(error) = engine.write(&packet).await {
            return error.into();
        }
    }
}

/// The client's next packet, for the engine.
async fn from_client(reader: &mut (impl AsyncRead + Unpin), inbound: &mut Inbound<'_>) -> Result<ControlPacket, End> {
    let packet = ControlPacket::read(reader, CLIENT_PACKET_BYTES_MAX as usize).await?.ok_or(End::Closed)?;
    inbound.check(packet).await.map_err(End::Violation)
}

async fn to_client<R, W>(reader: &mut R, client: &mut PacketWriter<W>, connect: &Connect) -> End
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut is_first = true;
    loop {
        let mut packet = match client.flush_before(ControlPacket::read(reader, ENGINE_PACKET_BYTES_MAX)).await {
            Ok(Ok(Some(packet))) => packet,
            Ok(Ok(None) | Err(ReadError::Io(_))) | Err(_) => return End::Closed,
            Ok(Err(error)) => {
                tracing::error!(error = %ErrorChain(&error), "the MQTT engine sent a packet that cannot be forwarded");
                return End::Closed;
            }
        };
        if is_first {
            is_first = false;
            packet = match connect.connack(packet, CLIENT_PACKET_BYTES_MAX) {
                Ok(packet) => packet,
                Err(_) => return End::Violation(ReasonCode::UnspecifiedError),
            };
        }
        if client.write(&packet).await.is_err() {
            return End::Closed;
        }
    }
}

/// Reads and discards the rest. `tokio::io::copy` would allocate 8 KiB, which counts when thousands of clients leave.
async fn read_to_end(reader: &mut (impl AsyncRead + Unpin)) {
    let mut rest = [0; 512];
    while reader.read(&mut rest).await.is_ok_and(|count| count > 0) {}
}
