//! Over-the-air activation: a join request from a network broker, and the join accept for it.
//!
//! The network chooses the address and the radio settings. The handler knows the device's key, so it verifies the
//! request, derives the session keys and stores them.

mod crypto;
mod frame;

use std::{collections::BTreeSet, sync::Arc};

use types::{
    AccessKey, Activation, AppId, AppKey, AppNonce, ApplicationRight, Clock, Credential, DevId, DevicePath, Kind,
    Kinded, Metadata, NwkSKey, Random,
};

pub(crate) use self::frame::{JoinAccept, JoinRequest};
use crate::{
    Error,
    access::Access,
    network::network_broker::NetworkBrokers,
    output::{Event, Message, Output, PublishReceipt},
    registry::{
        application::Applications,
        device::{Device, Devices, Nonces, Session},
    },
    status::metrics,
    uplink::LastHeardTimes,
};

const APP_NONCES: u32 = 1 << 24;

/// Maximum number of nonces to try: a device uses at most 65,536 under one key, so one of these is free.
const APP_NONCES_TRIED_MAX: u32 = 65_537;

/// Activates devices that join.
pub struct Joins {
    /// Decides whether an application's key may register devices.
    pub access: Access,
    /// The applications, with the access keys for registering on join.
    pub applications: Applications,
    /// The devices and templates that join.
    pub devices: Devices,
    /// The network brokers, whose network servers need to know devices that register on join.
    pub network_brokers: Arc<NetworkBrokers>,
    /// Receives events.
    pub output: Arc<dyn Output>,
    /// Remembers when devices were heard.
    pub last_heard: Arc<LastHeardTimes>,
    /// Chooses application nonces.
    pub random: Arc<dyn Random>,
    /// The time of a join.
    pub clock: Arc<dyn Clock>,
}

/// A join request from a network broker.
#[derive(Clone, Debug)]
pub(crate) struct ActivationRequest {
    pub(crate) app_id: AppId,
    /// The device, or its template.
    pub(crate) dev_id: DevId,
    pub(crate) join_request: JoinRequest,
    /// The join accept that the network prepared; none if no gateway can send it.
    pub(crate) join_accept: Option<JoinAccept>,
    /// Time and metadata of the reception.
    pub(crate) metadata: Metadata,
}

/// The join accept for a device, and what the network needs to know about its session.
#[derive(Clone, Debug)]
pub(crate) struct Activated {
    /// The encrypted join accept.
    pub(crate) frame: Vec<u8>,
    pub(crate) dev_addr: types::DevAddr,
    pub(crate) nwk_s_key: NwkSKey,
}

impl Joins {
    /// The join request as the device itself would have signed it. This shows a network broker which handler knows the
    /// device.
    pub(crate) async fn challenge(&self, path: DevicePath<'_>, request: &JoinRequest) -> Result<Vec<u8>, Error> {
        let device = self.devices.get(path).await?;
        request.signed_with(key(&device)?)
    }

    /// Starts a session for the device, and publishes an event for its application either way.
    pub(crate) async fn handle(&self, request: ActivationRequest) -> Result<Activated, Error> {
        let result = self.activate(&request).await;
        match &result {
            Ok((device, activated)) => {
                self.last_heard.note_joined(device.path());
                let activation = Activation { dev_addr: activated.dev_addr, ..request.activation() };
                self.publish(device.path(), Event::Activation(activation)).wait().await?;
                metrics::joined();
            }
            Err(error) => {
                metrics::not_joined(error.kind());
                self.publish_error(&request, error);
            }
        }
        result.map(|(_, activated)| activated)
    }

    async fn activate(&self, request: &ActivationRequest) -> Result<(Device, Activated), Error> {
        let accept = request.join_accept.as_ref();
        let accept = accept.ok_or_else(|| Error::invalid("Activation", "No gateways available for downlink"))?;
        let device = self.devices.get(request.path()).await?;
        request.check(&device)?;
        let device = if device.is_template() { self.find_or_register(&device, request).await? } else { device };
        let begin = |device: &Device, used: &Nonces| {
            request.check(device)?;
            self.session(request, accept, key(device)?, used)
        };
        let (device, session) = self.devices.begin_session(device.path(), begin).await?;
        let frame = accept.encrypt(key(&device)?, session.app_nonce)?;
        Ok((device, Activated { frame, dev_addr: session.dev_addr, nwk_s_key: session.nwk_s_key }))
    }

    fn session(
        &self,
        request: &ActivationRequest,
        accept: &JoinAccept,
        key: &AppKey,
        used: &Nonces,
    ) -> Result<Session, Error> {
        let dev_nonce = request.join_request.dev_nonce;
        if used.dev.contains(&dev_nonce) {
            return Err(Error::invalid("Activation DevNonce", "already used"));
        }
        let app_nonce = unused_nonce(u32::from_be_bytes(self.random.array()), &used.app)?;
        let (nwk_s_key, app_s_key) = crypto::session_keys(key, app_nonce, accept.net_id, dev_nonce)?;
        let dev_addr = accept.dev_addr;
        Ok(Session { dev_nonce, app_nonce, dev_addr, nwk_s_key, app_s_key, started_at: self.clock.now() })
    }

    /// The device that joins by a template. It is registered unless it already is.
    async fn find_or_register(&self, template: &Device, request: &ActivationRequest) -> Result<Device, Error> {
        let new = template.registered_on_join(request.join_request.dev_eui, self.clock.now())?;
        if let Some(dev_id) = self.devices.find_by_euis(&new).await? {
            return self.devices.get(DevicePath { app_id: &new.app_id, dev_id: &dev_id }).await;
        }
        let key = self.allow_registration(&new.app_id).await?;
        match self.register(&new, key).await {
            Ok(()) => {
                self.publish(new.path(), Event::Create(None)).wait().await?;
                Ok(new)
            }
            // The same device sent two join requests at once.
            Err(error @ Error::AlreadyExists { .. }) => match self.devices.find_by_euis(&new).await? {
                Some(dev_id) => self.devices.get(DevicePath { app_id: &new.app_id, dev_id: &dev_id }).await,
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Creates a device, in the network servers first, if there are any.
    async fn register(&self, device: &Device, key: AccessKey) -> Result<(), Error> {
        let keep = self.devices.create(device.clone());
        if self.network_brokers.is_empty() {
            return keep.await;
        }
        let token = self.access.token(&device.app_id, &Credential::Key(key)).await?;
        let lock = self.network_brokers.lock_for_join(&device.app_id).await?;
        self.network_brokers.change((&lock, &token), (&self.devices, keep), device, None).await
    }

    async fn allow_registration(&self, app_id: &AppId) -> Result<AccessKey, Error> {
        let key = self.applications.summary(app_id).await?.register_on_join_access_key.ok_or_else(|| {
            Error::invalid("Application", "Does not have Access Key configured for device registration on join")
        })?;
        self.access.allow_key(key.clone(), app_id, ApplicationRight::Devices).await?;
        Ok(key)
    }

    /// Tells the application about an error that it can do something about; outages are for the operator.
    fn publish_error(&self, request: &ActivationRequest, error: &Error) {
        if !matches!(error.kind(), Kind::Invalid | Kind::NotFound | Kind::Denied) {
            return;
        }
        let activation =
            Activation { error: Some(error.to_string()), metadata: Metadata::default(), ..request.activation() };
        // The join is refused either way, and the device tries again.
        self.publish(request.path(), Event::ActivationError(activation)).forget();
    }

    fn publish(&self, DevicePath { app_id, dev_id }: DevicePath<'_>, event: Event) -> PublishReceipt {
        self.output.publish(Message { app_id: app_id.clone(), dev_id: dev_id.clone(), event })
    }
}

impl ActivationRequest {
    fn path(&self) -> DevicePath<'_> {
        DevicePath { app_id: &self.app_id, dev_id: &self.dev_id }
    }

    /// Checks that the device sent it: the signature is made with its key, and the EUIs are the registered ones.
    fn check(&self, device: &Device) -> Result<(), Error> {
        let key = key(device)?;
        let lorawan = &device.lorawan;
        let is_same = lorawan.app_eui == self.join_request.app_eui
            && (device.is_template() || lorawan.dev_eui == self.join_request.dev_eui);
        if !is_same || self.join_request.dev_eui.is_zero() {
            return Err(Error::invalid("Activation", "AppEUI and DevEUI are not those of the device"));
        }
        if self.join_request.is_signed_with(key)? { Ok(()) } else { Err(Error::WrongMic) }
    }

    /// The event for the application, still without an address.
    fn activation(&self) -> Activation {
        let JoinRequest { app_eui, dev_eui, .. } = self.join_request;
        Activation { app_eui, dev_eui, metadata: self.metadata.clone(), ..Activation::default() }
    }
}

/// The first unused application nonce from `start`, which is random.
fn unused_nonce(start: u32, used: &BTreeSet<AppNonce>) -> Result<AppNonce, Error> {
    let mut candidates = (0..APP_NONCES_TRIED_MAX).map(|step| {
        let [_, a, b, c] = (start.wrapping_add(step) % APP_NONCES).to_be_bytes();
        AppNonce::new([a, b, c])
    });
    let unused = candidates.find(|nonce| !used.contains(nonce));
    unused.ok_or_else(|| Error::invalid("Activation AppNonce", "all are used: give the device a new AppKey"))
}

fn key(device: &Device) -> Result<&AppKey, Error> {
    let key = device.lorawan.app_key.as_ref().filter(|key| !key.is_zero());
    key.ok_or_else(|| Error::NoAppKey(device.dev_id.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nonces(numbers: impl Iterator<Item = u32>) -> BTreeSet<AppNonce> {
        numbers.map(|number| unused_nonce(number, &BTreeSet::new()).unwrap()).collect()
    }

    #[test]
    fn a_used_nonce_is_skipped() {
        let used = nonces([APP_NONCES - 1, 0].into_iter());
        assert_eq!(unused_nonce(APP_NONCES - 1, &used).unwrap().to_hex(), "000001");
        assert_eq!(unused_nonce(7, &used).unwrap().to_hex(), "000007");
    }

    #[test]
    fn a_join_fails_when_no_nonce_is_unused() {
        let used = nonces(0..APP_NONCES_TRIED_MAX);
        assert!(unused_nonce(0, &used).unwrap_err().to_string().contains("new AppKey"));
        assert_eq!(unused_nonce(1, &used).unwrap().to_hex(), "010001");
    }
}
