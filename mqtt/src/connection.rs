//! One client's connection: its CONNECT, then packets in both directions until one side closes.

pub(crate) mod connect;
pub(crate) mod connect_limits;
pub(crate) mod context;
pub(crate) mod downlinks;
mod inbound;
pub(crate) mod listener;
pub(crate) mod open_connections;
mod packet_stream;
mod publications;
mod websocket;

use std::{net::IpAddr, pin::pin, time::Duration};

use futures::FutureExt;
use mqtt5_protocol::{PacketType, Properties, types::ReasonCode};
use serde_json::json;
use server::{
    ledger::{Charge, Owner},
    status::ErrorChain,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, sleep, timeout},
};

use types::AppId;

use self::{
    connect::{Connect, ConnectError},
    context::Context,
    inbound::{Inbound, Reaction},
    packet_stream::{CLOSE_WAIT, PacketStream, Progress, StreamError},
};
use crate::{
    Publication, metrics,
    packet::{self, ControlPacket, limits::CLIENT_PACKET_BYTES_MAX},
    router::AttachError,
    session::{
        Attachment, SessionRequest,
        disconnect::{Disconnect, DisconnectReason},
    },
};

/// Time that a client may take to send its CONNECT.
const CONNECT_WAIT: Duration = Duration::from_secs(5);

/// Time after which a client that takes no bytes is disconnected.
const WRITE_WAIT: Duration = Duration::from_secs(60);

/// Interval of the checks that the client reads and keeps alive.
const CHECK_INTERVAL: Duration = Duration::from_secs(20);

/// Maximum number of packets read from a client that has connected again.
const PACKETS_READ_LATE_MAX: usize = 100;

/// A client that has connected.
pub(crate) struct Client<S> {
    stream: PacketStream<S>,
}

/// Address of a client.
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    /// Charges the address with the connection, until an owner is.
    pub(crate) _place: Charge,
}

/// Reasons why a connection ended.
enum End {
    /// The client closed it, or it broke.
    Closed,
    /// The client said that it leaves.
    Left { with_will: bool },
    /// The client violated the protocol or a limit.
    Violation(ReasonCode),
    /// The broker ended it.
    Ended(DisconnectReason),
}

impl From<StreamError> for End {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Closed => Self::Closed,
            StreamError::Packet(error) => Self::Violation(error.reason()),
        }
    }
}

impl End {
    /// Returns the reason code for a client of MQTT 5, if it gets one.
    fn reason(&self) -> Option<ReasonCode> {
        match self {
            Self::Closed | Self::Left { .. } => None,
            Self::Violation(reason) => Some(*reason),
            Self::Ended(DisconnectReason::Revoked) => Some(ReasonCode::NotAuthorized),
            Self::Ended(DisconnectReason::Unconfirmed) => Some(ReasonCode::ServerBusy),
            Self::Ended(DisconnectReason::TakenOver) => Some(ReasonCode::SessionTakenOver),
            Self::Ended(DisconnectReason::Stopping) => Some(ReasonCode::ServerShuttingDown),
        }
    }

    /// Returns true if the will is published: not for clients that lost their rights, and not for all at once when
    /// the broker stops.
    fn has_will(&self, is_delayed: bool) -> bool {
        match self {
            Self::Closed | Self::Violation(_) => true,
            Self::Left { with_will } => *with_will,
            Self::Ended(DisconnectReason::TakenOver) => !is_delayed,
            Self::Ended(_) => false,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream: PacketStream::new(stream) }
    }

    /// Serves the client from its CONNECT until it disconnects.
    pub(crate) async fn serve(mut self, context: &Context, peer: Peer) {
        // In a box, because it is large and over soon.
        let connect = Box::pin(self.connect(context, peer.address));
        let Some(Some((mut connect, owner))) = context.stop.run_until_cancelled(connect).await else { return };
        let number = context.connections.next_number();
        let request = connect.session_request(&context.salt, number);
        let (permissions, credential) = (connect.permissions.clone(), connect.credential.clone());
        let open = match context.connections.open(number, &request.id, (permissions, credential), &owner) {
            Ok(open) => open,
            Err(refusal) => return self.refuse(connect.version, &ConnectError::quota(&refusal)).await,
        };
        drop((peer, owner));
        let app_id = connect.permissions.app_id.clone();
        // In a box, because it is large and over soon.
        let attached = Box::pin(attach(context, &app_id, request, open.disconnect.clone())).await;
        open.previous.iter().for_each(|previous| previous.end(DisconnectReason::TakenOver));
        let attachment = match attached {
            Ok(attachment) => attachment,
            Err(refusal) => return self.refuse(connect.version, &refusal).await,
        };
        let end = match connect.accept(attachment.session_present) {
            Ok(connack) => {
                connack.append_to(self.stream.unwritten());
                self.exchange(context, &connect, &attachment).await
            }
            Err(_) => End::Violation(ReasonCode::UnspecifiedError),
        };
        // In a box, because it takes no memory until then.
        Box::pin(self.end(context, connect, &attachment, end)).await;
    }

    /// Reads and checks the CONNECT; returns nothing if the client was refused, or else also who has the application.
    async fn connect(&mut self, context: &Context, peer: IpAddr) -> Option<(Connect, Owner)> {
        let first = timeout(CONNECT_WAIT, self.stream.progress(CLIENT_PACKET_BYTES_MAX as usize));
        let Ok(Progress::Packet(packet)) = first.await.ok()? else { return None };
        if packet.packet_type() != Some(PacketType::Connect) {
            return None;
        }
        let packet = packet.connect().ok()?;
        let (version, user) = (packet.protocol_version, packet.username.clone());
        let (limits, authenticator) = (&context.connect_limits, context.authenticator.as_ref());
        match Connect::check(packet, peer, limits, authenticator, context.session_expiry_max).await {
            Ok(connect) => {
                let owner = context.router.owner_of(&connect.permissions.app_id).await;
                Some((connect, owner))
            }
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
        let mut properties = Properties::new();
        if let Some(text) = &error.text {
            properties.set_reason_string(text.clone());
        }
        self.stream.close(ControlPacket::connack(version, false, error.reason, properties).ok()).await;
    }

    /// Exchanges packets until one side ends the connection. What the client has published until then is handed over,
    /// unless the broker ends the connection: the client sends it again.
    async fn exchange(&mut self, context: &Context, connect: &Connect, attachment: &Attachment) -> End {
        let mut inbound = Inbound::new(context, connect, attachment);
        let end = self.exchange_packets(context, connect, attachment, &mut inbound).await;
        if inbound.is_publishing() {
            // In a box, because it is rare.
            Box::pin(self.answer_all(attachment, &mut inbound)).await;
        }
        end
    }

    /// Answers what the client has published, also if it did not wait for that. Why the connection ends is known
    /// already.
    async fn answer_all(&mut self, attachment: &Attachment, inbound: &mut Inbound<'_>) {
        let answer_all = async {
            while inbound.is_publishing() {
                _ = inbound.answer(self.stream.unwritten()).await;
            }
        };
        tokio::select! {
            biased;
            // The client has connected again, and sends what was not answered, or may do nothing more.
            _ = attachment.disconnect.wait() => {}
            _ = timeout(CLOSE_WAIT, answer_all) => {}
        }
    }

    async fn exchange_packets(
        &mut self,
        context: &Context,
        connect: &Connect,
        attachment: &Attachment,
        inbound: &mut Inbound<'_>,
    ) -> End {
        let ended = attachment.disconnect.wait();
        // The client may be late by half of what it promised.
        let patience = Duration::from_secs(connect.keep_alive.into()).mul_f64(1.5);
        let (mut ended, mut check) = (pin!(ended), pin!(sleep(CHECK_INTERVAL.min(patience))));
        let (mut last_packet, mut answers) = (Instant::now(), Vec::new());
        loop {
            self.deliver(connect, attachment);
            report_dropped(context, connect, attachment);
            let progress = tokio::select! {
                biased;
                reason = ended.as_mut() => return Box::pin(self.ended(reason, inbound)).await,
                answered = inbound.answer(&mut answers), if inbound.is_publishing() => {
                    self.stream.unwritten().append(&mut answers);
                    match answered {
                        Ok(()) => continue,
                        Err(reason) => return End::Violation(reason),
                    }
                }
                progress = self.stream.progress(CLIENT_PACKET_BYTES_MAX as usize) => progress,
                () = attachment.changed(), if self.stream.has_room() => continue,
                () = check.as_mut() => {
                    if self.stream.blocked_for() >= WRITE_WAIT {
                        return End::Closed;
                    }
                    if last_packet.elapsed() >= patience {
                        return End::Violation(ReasonCode::KeepAliveTimeout);
                    }
                    let next = CHECK_INTERVAL.min(patience.saturating_sub(last_packet.elapsed()));
                    check.as_mut().reset(Instant::now() + next);
                    continue;
                }
            };
            let packet = match progress {
                Ok(Progress::Written) => continue,
                Ok(Progress::Packet(packet)) => packet,
                Err(error) => return error.into(),
            };
            last_packet = Instant::now();
            let reaction = tokio::select! {
                biased;
                reaction = inbound.handle(packet, self.stream.unwritten()) => reaction,
                reason = ended.as_mut() => return Box::pin(self.ended(reason, inbound)).await,
            };
            match reaction {
                Ok(Reaction::Nothing) => {}
                Ok(Reaction::Packet(packet)) => packet.append_to(self.stream.unwritten()),
                Ok(Reaction::Leaves { with_will }) => return End::Left { with_will },
                Err(reason) => return End::Violation(reason),
            }
        }
    }

    /// Returns the end of the connection for this reason. A client that has connected again may have left before, and
    /// then its will does not count. In a box, because it is large and happens once.
    async fn ended(&mut self, reason: DisconnectReason, inbound: &mut Inbound<'_>) -> End {
        let packets_max = if reason == DisconnectReason::TakenOver { PACKETS_READ_LATE_MAX } else { 0 };
        for _ in 0..packets_max {
            let progress = self.stream.progress(CLIENT_PACKET_BYTES_MAX as usize).now_or_never();
            let Some(Ok(progress)) = progress else { break };
            if let Progress::Packet(packet) = progress
                && packet.packet_type() == Some(PacketType::Disconnect)
                && let Ok(Reaction::Leaves { with_will }) = inbound.disconnect(&packet)
            {
                return End::Left { with_will };
            }
        }
        End::Ended(reason)
    }

    /// Hands on what the session has for the client, as far as the client and its connection keep up.
    fn deliver(&mut self, connect: &Connect, attachment: &Attachment) {
        let counters = &attachment.session.counters;
        let mut delivered = 0;
        while self.stream.has_room()
            && let Some(sending) = attachment.next(connect.window)
        {
            let unwritten = self.stream.unwritten();
            let before = unwritten.len();
            let is_written = packet::append_publish(unwritten, &sending, connect.version).is_ok();
            if !is_written || unwritten.len() - before > connect.packet_bytes_max {
                // As MQTT 5 has it: what the client cannot take counts as delivered.
                unwritten.truncate(before);
                counters.dropped(1);
                sending.packet_id.into_iter().for_each(|packet_id| attachment.acknowledge(packet_id));
            } else {
                delivered += 1;
            }
        }
        counters.delivered(delivered);
    }

    async fn end(&mut self, context: &Context, connect: Connect, attachment: &Attachment, end: End) {
        let app_id = &connect.permissions.app_id;
        if let End::Ended(DisconnectReason::Stopping) = end {
            _ = timeout(CLOSE_WAIT, self.deliver_rest(&connect, attachment)).await;
        }
        match end {
            End::Ended(DisconnectReason::Revoked) => context.router.remove(app_id, attachment),
            _ => context.router.detach(app_id, attachment),
        }
        if let End::Violation(reason) = end {
            tracing::info!(%app_id, ?reason, "disconnected an MQTT client");
        }
        let reason = end.reason().filter(|_| connect.version >= 5);
        self.stream.close(reason.and_then(|reason| ControlPacket::server_disconnect(reason).ok())).await;
        publish_will(context, connect, &end).await;
        if matches!(end, End::Violation(_)) {
            self.stream.linger().await;
        }
    }

    /// Writes what can be sent without an acknowledgement.
    async fn deliver_rest(&mut self, connect: &Connect, attachment: &Attachment) {
        self.deliver(connect, attachment);
        while !self.stream.unwritten().is_empty()
            && self.stream.progress(CLIENT_PACKET_BYTES_MAX as usize).await.is_ok()
        {
            self.deliver(connect, attachment);
        }
    }
}

/// Gives a client its session. It is stored before the client hears of it.
async fn attach(
    context: &Context,
    app_id: &AppId,
    request: SessionRequest,
    disconnect: Disconnect,
) -> Result<Attachment, ConnectError> {
    let attached = context.router.attach(app_id, request, disconnect).await;
    let attachment = attached.map_err(|error| {
        tracing::warn!(%app_id, error = %ErrorChain(&error), "cannot give an MQTT client its session");
        match error {
            AttachError::Full | AttachError::Memory(_) => ConnectError::quota(&error),
            AttachError::Store(_) | AttachError::Late => ReasonCode::ServerUnavailable.into(),
        }
    })?;
    if context.router.stored(app_id, &attachment).await.is_ok() {
        return Ok(attachment);
    }
    context.router.detach(app_id, &attachment);
    Err(ReasonCode::ServerUnavailable.into())
}

/// Tells the application that a client lost messages, once the client has caught up.
fn report_dropped(context: &Context, connect: &Connect, attachment: &Attachment) {
    let Some(messages) = attachment.take_dropped() else { return };
    let app_id = &connect.permissions.app_id;
    let body = json!({ "client_id": connect.client_id(), "messages": messages });
    let topic = format!("{app_id}/events/dropped");
    // Nobody waits for it, and the next one has what this one loses.
    context.router.publish(app_id, [Publication { topic, payload: body.to_string().into() }]).forget();
}

async fn publish_will(context: &Context, mut connect: Connect, end: &End) {
    let Some(will) = connect.will.take().filter(|will| end.has_will(will.is_delayed)) else { return };
    let Some(dev_id) = connect.permissions.downlink_device(&will.message.topic) else { return };
    if let Err(refusal) = inbound::publish_downlink(context, &connect, dev_id, will.message).await {
        tracing::warn!(app_id = %connect.permissions.app_id, ?refusal, "could not keep the will of an MQTT client");
    }
}
