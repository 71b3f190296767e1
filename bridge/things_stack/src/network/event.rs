//! Messages of The Things Stack as events that do not depend on the network.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bridge::message::radio::{lenient, lenient_list};
use serde::Deserialize;
use serde_json::Value;
use types::{
    AppEui, DevAddr, DownlinkConfig, DownlinkOutcome, DownlinkReport, NetworkDevice, NetworkEvent, NetworkJoin,
    NetworkUplink, Timestamp,
};

use super::send::CORRELATION_PREFIX;
use crate::{
    application::topic::Topic,
    message::{
        other::ErrorDetails,
        radio::{self, RxMetadata, Settings},
    },
};

/// Reasons why a message cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("it is not The Things Stack's JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("`{0}` is missing or malformed")]
    Member(&'static str),
    #[error("the device has no DevEUI: set one in the Console")]
    NoDevEui,
    #[error("its payload is encrypted end to end: let The Things Stack decrypt the payloads of the application")]
    Encrypted,
}

/// The parts of a message that are read. The Things Stack leaves out members that are zero or empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportedMessage {
    end_device_ids: EndDeviceIds,
    #[serde(deserialize_with = "lenient")]
    received_at: Option<Timestamp>,
    uplink_message: Option<Uplink>,
    join_accept: Option<JoinAccept>,
    downlink_sent: Option<Downlink>,
    downlink_ack: Option<Downlink>,
    downlink_nack: Option<Downlink>,
    downlink_failed: Option<Failed>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct EndDeviceIds {
    device_id: String,
    dev_eui: String,
    join_eui: String,
    dev_addr: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Uplink {
    #[serde(deserialize_with = "lenient")]
    session_key_id: String,
    f_port: u8,
    f_cnt: u32,
    frm_payload: String,
    confirmed: bool,
    #[serde(deserialize_with = "lenient")]
    received_at: Option<Timestamp>,
    #[serde(deserialize_with = "lenient_list")]
    rx_metadata: Vec<RxMetadata>,
    #[serde(deserialize_with = "lenient")]
    settings: Settings,
    #[serde(deserialize_with = "lenient")]
    consumed_airtime: String,
    /// Present if the payload is encrypted.
    app_s_key: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct JoinAccept {
    received_at: Option<Timestamp>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Downlink {
    f_cnt: u32,
    correlation_ids: Vec<String>,
    confirmed_retry: Option<ConfirmedRetry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ConfirmedRetry {
    attempt: u32,
    max_attempts: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Failed {
    downlink: Downlink,
    error: ErrorDetails,
}

/// The event that a message reports, and what tells copies of it.
pub(super) struct IdentifiedEvent {
    pub(super) event: NetworkEvent,
    /// Equal in copies of an uplink, also those from the storage integration; empty for other messages.
    pub(super) identity: String,
}

/// Reads a message that came on `topic`; none if it says nothing that an application of v2 learns.
pub(super) fn read(topic: Topic<'_>, payload: &[u8]) -> Result<Option<IdentifiedEvent>, Unreadable> {
    if !["up", "join", "down/sent", "down/ack", "down/nack", "down/failed"].contains(&topic.rest) {
        return Ok(None);
    }
    let message: ReportedMessage = serde_json::from_slice(payload)?;
    let device = message.device(topic)?;
    if topic.rest == "up" {
        return message.uplink(device).map(Some);
    }
    let event = match topic.rest {
        "join" => Some(NetworkEvent::Join(message.join(device)?)),
        _ => message.downlink(device).map(NetworkEvent::Downlink),
    };
    Ok(event.map(|event| IdentifiedEvent { event, identity: String::new() }))
}

impl ReportedMessage {
    /// The device, which must be that of the topic: the server has checked that, unlike the body.
    fn device(&self, topic: Topic<'_>) -> Result<NetworkDevice, Unreadable> {
        let EndDeviceIds { device_id, dev_eui, join_eui, .. } = &self.end_device_ids;
        if *device_id != *topic.device {
            return Err(Unreadable::Member("end_device_ids.device_id"));
        }
        if dev_eui.bytes().all(|digit| digit == b'0') {
            return Err(Unreadable::NoDevEui);
        }
        let app_eui = match join_eui.as_str() {
            "" => AppEui::default(),
            join_eui => join_eui.parse().map_err(|_| Unreadable::Member("end_device_ids.join_eui"))?,
        };
        Ok(NetworkDevice {
            dev_eui: dev_eui.parse().map_err(|_| Unreadable::Member("end_device_ids.dev_eui"))?,
            app_eui: Some(app_eui),
            name: device_id.clone(),
            ..NetworkDevice::default()
        })
    }

    fn uplink(self, device: NetworkDevice) -> Result<IdentifiedEvent, Unreadable> {
        let uplink = self.uplink_message.ok_or(Unreadable::Member("uplink_message"))?;
        if uplink.app_s_key.as_ref().is_some_and(|key| !key.is_null()) {
            return Err(Unreadable::Encrypted);
        }
        let received = uplink.received_at.or(self.received_at);
        // The storage integration rounds times.
        let received_ms = received.map_or(0, Timestamp::as_millis);
        let Uplink { session_key_id, f_cnt, frm_payload, .. } = &uplink;
        let identity = format!("{session_key_id} {f_cnt} {received_ms} {frm_payload}");
        let event = NetworkEvent::Uplink(Box::new(NetworkUplink {
            device,
            port: uplink.f_port,
            f_cnt: uplink.f_cnt,
            confirmed: uplink.confirmed,
            payload: STANDARD.decode(uplink.frm_payload).map_err(|_| Unreadable::Member("frm_payload"))?,
            received,
            metadata: radio::metadata(&uplink.settings, uplink.rx_metadata, &uplink.consumed_airtime),
            variables: None,
            warnings: Vec::new(),
        }));
        Ok(IdentifiedEvent { event, identity })
    }

    fn join(self, device: NetworkDevice) -> Result<NetworkJoin, Unreadable> {
        let join = self.join_accept.ok_or(Unreadable::Member("join_accept"))?;
        let dev_addr: Option<DevAddr> = self.end_device_ids.dev_addr.parse().ok();
        let dev_addr = dev_addr.filter(|dev_addr| !dev_addr.is_zero());
        let dev_addr = dev_addr.ok_or(Unreadable::Member("end_device_ids.dev_addr"))?;
        Ok(NetworkJoin { device, dev_addr, received: join.received_at.or(self.received_at) })
    }

    /// Returns the outcome of a downlink. Returns `None` if somebody else sent it, unless it failed.
    fn downlink(self, device: NetworkDevice) -> Option<DownlinkReport> {
        let (downlink, outcome) = match self {
            Self { downlink_sent: Some(downlink), .. } => {
                let config = DownlinkConfig { counter: downlink.f_cnt, ..DownlinkConfig::default() };
                (downlink, DownlinkOutcome::Sent { gateway_id: String::new(), config })
            }
            Self { downlink_ack: Some(downlink), .. } => (downlink, DownlinkOutcome::Acknowledged),
            Self { downlink_nack: Some(downlink), .. } => {
                let reason = downlink.given_up()?;
                (downlink, DownlinkOutcome::Failed(reason))
            }
            Self { downlink_failed: Some(Failed { downlink, error }), .. } => {
                (downlink, DownlinkOutcome::Failed(error.text()))
            }
            _ => return None,
        };
        let id = downlink.id();
        (!id.is_empty() || matches!(outcome, DownlinkOutcome::Failed(_))).then_some(DownlinkReport {
            device,
            id,
            outcome,
        })
    }
}

impl Downlink {
    /// The id that it got from us; empty if it has none.
    fn id(&self) -> String {
        let mut ids = self.correlation_ids.iter();
        ids.find_map(|id| id.strip_prefix(CORRELATION_PREFIX)).unwrap_or_default().to_owned()
    }

    /// Returns the reason why The Things Stack stopped sending an unacknowledged downlink; `None` if it is sent again.
    fn given_up(&self) -> Option<String> {
        let ConfirmedRetry { attempt, max_attempts } = *self.confirmed_retry.as_ref()?;
        (max_attempts > 0 && attempt >= max_attempts)
            .then(|| format!("the device did not acknowledge the downlink, which was sent {attempt} times"))
    }
}
