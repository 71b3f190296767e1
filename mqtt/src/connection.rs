//! One client's connection: its CONNECT, then packets in both directions until one side closes.

use server::status::ErrorChain;
use std::{io, net::IpAddr, sync::Arc, time::Duration};

use mqtt5::{PacketType, types::ReasonCode};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, BufWriter, ReadHalf, WriteHalf},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};
use tokio_util::sync::CancellationToken;

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

/// How long a client may take to send its CONNECT.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// How long a write to a client may block.
const WRITE_WAIT: Duration = Duration::from_secs(60);

/// How long closing a connection may take.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

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

/// Serves one client from its CONNECT until it disconnects.
pub(crate) async fn serve<S>(context: &ConnectionContext, stream: S, peer: IpAddr)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (reader, writer) = tokio::io::split(stream);
    let mut client = Client { reader: BufReader::new(reader), writer: PacketWriter::new(writer) };
    let Some(Some(connect)) = context.stop.run_until_cancelled(client.connect(context, peer)).await else { return };
    let Some(session) = context.sessions.open(connect.permissions.clone(), connect.credential.clone()) else {
        return client.refuse(connect.version(), &ReasonCode::QuotaExceeded.into()).await;
    };
    match EngineConnection::open(context, &connect).await {
        Ok(engine) => engine.proxy(context, &connect, client, &session).await,
        Err(error) => {
            tracing::error!(%error, "the MQTT engine does not accept a connection");
            client.refuse(connect.version(), &ReasonCode::ServerUnavailable.into()).await;
        }
    }
}

/// Writes packets, and knows whether the last one was written only in part.
struct PacketWriter<W> {
    writer: BufWriter<W>,
    is_partial: bool,
}

impl<W: AsyncWrite + Unpin> PacketWriter<W> {
    fn new(writer: W) -> Self {
        Self { writer: BufWriter::new(writer), is_partial: false }
    }

    /// Writes a packet; flushes unless another packet follows at once.
    async fn write(&mut self, packet: &ControlPacket, flush: bool) -> io::Result<()> {
        self.is_partial = true;
        packet.write(&mut self.writer).await?;
        self.is_partial = false;
        if flush { self.writer.flush().await } else { Ok(()) }
    }

    /// Writes a last packet, unless it would land in the middle of another, and closes.
    async fn close(&mut self, last: Option<ControlPacket>) {
        let close = async {
            if let Some(packet) = last.filter(|_| !self.is_partial) {
                packet.write(&mut self.writer).await?;
            }
            self.writer.shutdown().await
        };
        // It does not matter whether a peer that is already gone receives this.
        _ = timeout(CLOSE_WAIT, close).await;
    }
}

struct Client<S> {
    reader: BufReader<ReadHalf<S>>,
    writer: PacketWriter<WriteHalf<S>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
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
    reader: BufReader<OwnedReadHalf>,
    writer: PacketWriter<OwnedWriteHalf>,
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
        let stream = TcpStream::connect(context.engine.address).await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        let mut writer = PacketWriter::new(writer);
        writer.write(&packet, true).await?;
        Ok(Self { session_id, reader: BufReader::new(reader), writer })
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
        // Read to the end: closing a socket with unread bytes discards what was written to it.
        _ = timeout(CLOSE_WAIT, tokio::io::copy(&mut self.reader, &mut tokio::io::sink())).await;
        if matches!(end, End::Revoked) && !self.session_id.is_empty() {
            context.engine.delete_session(&self.session_id).await;
        }
    }
}

async fn to_engine<R, W>(reader: &mut BufReader<R>, engine: &mut PacketWriter<W>, inbound: &mut Inbound<'_>) -> End
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    loop {
        let packet = match ControlPacket::read(reader, CLIENT_PACKET_BYTES_MAX as usize).await {
            Ok(Some(packet)) => packet,
            Ok(None) => return End::Closed,
            Err(error) => return error.into(),
        };
        let packet = match inbound.check(packet).await {
            Ok(packet) => packet,
            Err(reason) => return End::Violation(reason),
        };
        if let Err(error) = engine.write(&packet, reader.buffer().is_empty()).await {
            return error.into();
        }
    }
}

async fn to_client<R, W>(reader: &mut BufReader<R>, client: &mut PacketWriter<W>, connect: &Connect) -> End
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut is_first = true;
    loop {
        let mut packet = match ControlPacket::read(reader, ENGINE_PACKET_BYTES_MAX).await {
            Ok(Some(packet)) => packet,
            Ok(None) | Err(ReadError::Io(_)) => return End::Closed,
            Err(error) => {
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
        match timeout(WRITE_WAIT, client.write(&packet, reader.buffer().is_empty())).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return End::Closed,
        }
    }
}
