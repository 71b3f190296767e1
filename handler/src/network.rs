//! Networks that bring devices: their reports, joins and data frames of LoRaWAN, and the network brokers of v2.
//! Downlinks leave through [`DownlinkNetwork`](crate::downlink::DownlinkNetwork), and to network brokers as responses.

pub mod join;
mod lorawan;
pub mod network_broker;
mod registration;

use std::sync::Arc;

use history::Outcome;
use server::usage::Usage;
use types::{
    Activation, AppId, Clock, DevId, DevicePath, DownlinkReport, Kind, Kinded, Metadata, NetworkDevice, NetworkEvent,
    NetworkJoin, NetworkUplink,
};

pub use self::registration::Registration;
use crate::{
    Error,
    downlink::Outgoing,
    output::{Event, Message, Output, PublishReceipt},
    registry::device::Devices,
    status::{Traffic, metrics},
    uplink::{Frame, Reader, Uplinks},
};

/// Takes what networks report about their devices.
pub struct NetworkEvents {
    /// The devices, some of which are registered when they are first heard.
    pub devices: Devices,
    /// Handles uplinks.
    pub uplinks: Arc<Uplinks>,
    /// Knows which downlinks networks have taken.
    pub outgoing: Arc<Outgoing>,
    /// Receives events.
    pub output: Arc<dyn Output>,
    /// Counts uplinks and activations.
    pub traffic: Arc<Traffic>,
    /// Clock for the time of reception.
    pub clock: Arc<dyn Clock>,
}

impl NetworkEvents {
    /// Handles what a network reports about a device of an application; returns what was made of an uplink.
    ///
    /// [`Error::NotFound`] if the application or the device is not registered, and may not be. An error whose kind is
    /// [`Kind::Unavailable`] may pass.
    pub async fn handle(&self, registration: &Registration, event: NetworkEvent) -> Result<Option<Outcome>, Error> {
        match event {
            NetworkEvent::Uplink(uplink) => return self.uplink(registration, *uplink).await.map(Some),
            NetworkEvent::Join(join) => self.join(registration, join).await?,
            NetworkEvent::Downlink(report) => self.downlink(registration, report).await?,
        }
        Ok(None)
    }

    async fn uplink(&self, registration: &Registration, uplink: NetworkUplink) -> Result<Outcome, Error> {
        let dev_id = self.device(registration, &uplink.device).await?;
        let now = self.clock.now();
        let frame = Frame::from_network(registration.app_id.clone(), dev_id, uplink, now)?;
        self.traffic.uplink.mark(now);
        match self.uplinks.handle_for(frame, &Usage::default(), Reader::Nobody).await {
            // The validator returned false, and the application was told so.
            Err(error) if error.kind() == Kind::Invalid => Ok(Outcome::Invalid),
            handled => handled.map(|handled| handled.outcome),
        }
    }

    async fn join(&self, registration: &Registration, join: NetworkJoin) -> Result<(), Error> {
        let NetworkJoin { device, dev_addr, received } = join;
        let dev_id = self.device(registration, &device).await?;
        let now = self.clock.now();
        self.traffic.activations.mark(now);
        self.uplinks.last_heard.note_joined(DevicePath { app_id: &registration.app_id, dev_id: &dev_id });
        metrics::joined();
        let time = received.unwrap_or(now).to_rfc3339();
        let NetworkDevice { app_eui, dev_eui, .. } = device;
        let metadata = Metadata { time, ..Metadata::default() };
        let app_eui = app_eui.unwrap_or_default();
        let activation = Activation { error: None, app_eui, dev_eui, dev_addr, metadata };
        self.publish(&registration.app_id, dev_id, Event::Activation(activation)).wait().await
    }

    /// Tells an application what became of a downlink. Nobody learns of those for devices that are not registered.
    async fn downlink(&self, registration: &Registration, report: DownlinkReport) -> Result<(), Error> {
        let DownlinkReport { device, id, outcome } = report;
        match self.find(registration, &device).await? {
            Some(dev_id) => {
                let path = DevicePath { app_id: &registration.app_id, dev_id: &dev_id };
                self.outgoing.report(path, &id, outcome).await
            }
            None => Ok(()),
        }
    }

    fn publish(&self, app_id: &AppId, dev_id: DevId, event: Event) -> PublishReceipt {
        self.output.publish(Message { app_id: app_id.clone(), dev_id, event })
    }
}
