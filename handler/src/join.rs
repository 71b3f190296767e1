//! The way of a device into its application: a join request that a broker brings, and what it is answered.
//!
//! The network has chosen the address and the settings; the handler knows the device's key, so it says who is genuine,
//! derives the keys of the session, and keeps them.

mod crypto;
mod frame;

use std::{iter, sync::Arc};

use types::{
    Activation, AppId, AppKey, AppNonce, ApplicationRight, Clock, DevId, Kind, Kinded, Metadata, NwkSKey, Random,
};

pub(crate) use self::frame::{JoinAccept, JoinRequest};
use crate::{
    Error,
    access::Access,
    application::Applications,
    device::{Device, Devices, Nonces, Session},
    metrics,
    output::{Event, Message, Output},
};

/// How many application nonces there are.
const APP_NONCES: u32 = 1 << 24;

/// Brings devices into their applications.
pub struct Joins {
    /// Decides whether an application's key may register devices.
    pub access: Access,
    /// The registered applications.
    pub applications: Applications,
    /// Their devices.
    pub devices: Devices,
    /// Where events go.
    pub output: Arc<dyn Output>,
    /// Makes nonces up.
    pub random: Arc<dyn Random>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
}

/// A join request on its way from a broker.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub(crate) app_id: AppId,
    /// The device, or the template that stands for it.
    pub(crate) dev_id: DevId,
    pub(crate) request: JoinRequest,
    /// What the network is ready to give; none when no gateway can send it.
    pub(crate) accept: Option<JoinAccept>,
    /// When and how it was received.
    pub(crate) metadata: Metadata,
}

/// What a device is answered, and what the network needs to know about its session.
#[derive(Clone, Debug)]
pub(crate) struct Joined {
    /// The frame for the device.
    pub(crate) frame: Vec<u8>,
    pub(crate) dev_addr: types::DevAddr,
    pub(crate) nwk_s_key: NwkSKey,
}

impl Joins {
    /// The request as the device itself would have signed it: by that a broker finds the handler that knows the device.
    pub(crate) async fn challenge(
        &self,
        app_id: &AppId,
        dev_id: &DevId,
        request: &JoinRequest,
    ) -> Result<Vec<u8>, Error> {
        let device = self.devices.get(app_id, dev_id).await?;
        request.signed_with(key(&device)?)
    }

    /// Begins a session for the device that asks for one, and tells its application how that went.
    pub(crate) async fn handle(&self, join: Join) -> Result<Joined, Error> {
        let joined = self.bring(&join).await;
        match &joined {
            Ok((device, joined)) => {
                let activation = Activation { dev_addr: joined.dev_addr, ..join.activation() };
                self.publish(&device.app_id, &device.dev_id, Event::Activation(activation));
                metrics::joined();
            }
            Err(error) => {
                metrics::not_joined(error.kind());
                self.report(&join, error);
            }
        }
        joined.map(|(_, joined)| joined)
    }

    async fn bring(&self, join: &Join) -> Result<(Device, Joined), Error> {
        let accept =
            join.accept.as_ref().ok_or_else(|| Error::invalid("Activation", "No gateways available for downlink"))?;
        let known = self.devices.get(&join.app_id, &join.dev_id).await?;
        join.check(&known)?;
        let device = if known.is_template() { self.find_or_register(&known, join).await? } else { known };
        let begin = |device: &Device, used: &Nonces| {
            join.check(device)?;
            self.session(join, accept, key(device)?, used)
        };
        let (device, session) = self.devices.begin_session(&device.app_id, &device.dev_id, begin).await?;
        let frame = accept.close(key(&device)?, session.app_nonce)?;
        Ok((device, Joined { frame, dev_addr: session.dev_addr, nwk_s_key: session.nwk_s_key }))
    }

    fn session(&self, join: &Join, accept: &JoinAccept, key: &AppKey, used: &Nonces) -> Result<Session, Error> {
        let dev_nonce = join.request.dev_nonce;
        if used.dev.contains(&dev_nonce) {
            return Err(Error::invalid("Activation DevNonce", "already used"));
        }
        let app_nonce = self.app_nonce(used);
        let (nwk_s_key, app_s_key) = crypto::session_keys(key, app_nonce, accept.net_id, dev_nonce)?;
        let dev_addr = accept.dev_addr;
        Ok(Session { dev_nonce, app_nonce, dev_addr, nwk_s_key, app_s_key, began: self.clock.now() })
    }

    /// A random nonce, or the next one that was not used: far fewer are used than there are.
    fn app_nonce(&self, used: &Nonces) -> AppNonce {
        let mut bytes = [0; 4];
        self.random.fill(&mut bytes);
        let first = u32::from_be_bytes(bytes) % APP_NONCES;
        let nonce = |number: u32| {
            let [_, a, b, c] = (number % APP_NONCES).to_be_bytes();
            AppNonce::new([a, b, c])
        };
        let mut candidates = iter::successors(Some(first), |number| number.checked_add(1)).map(nonce);
        candidates.find(|nonce| !used.app.contains(nonce)).unwrap_or_default()
    }

    /// The device for which a template stands: registered before, or now.
    async fn find_or_register(&self, template: &Device, join: &Join) -> Result<Device, Error> {
        let new = template.registered_on_join(join.request.dev_eui, self.clock.now())?;
        if let Some(dev_id) = self.devices.holder(&new).await? {
            return self.devices.get(&new.app_id, &dev_id).await;
        }
        self.allow_registration(&new.app_id).await?;
        match self.devices.create(new.clone()).await {
            Ok(()) => {
                self.publish(&new.app_id, &new.dev_id, Event::Create(None));
                Ok(new)
            }
            // The same device asked twice at once.
            Err(error @ Error::AlreadyExists { .. }) => match self.devices.holder(&new).await? {
                Some(dev_id) => self.devices.get(&new.app_id, &dev_id).await,
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    async fn allow_registration(&self, app_id: &AppId) -> Result<(), Error> {
        let key = self.applications.outline(app_id).await?.register_on_join_access_key.ok_or_else(|| {
            Error::invalid("Application", "Does not have Access Key configured for device registration on join")
        })?;
        self.access.allow_key(key, app_id, ApplicationRight::Devices).await
    }

    /// Tells an application what is its own business; that something is away is the operator's.
    fn report(&self, join: &Join, error: &Error) {
        if !matches!(error.kind(), Kind::Invalid | Kind::NotFound | Kind::Denied) {
            return;
        }
        let activation =
            Activation { error: Some(error.to_string()), metadata: Metadata::default(), ..join.activation() };
        self.publish(&join.app_id, &join.dev_id, Event::ActivationError(activation));
    }

    fn publish(&self, app_id: &AppId, dev_id: &DevId, event: Event) {
        self.output.publish(Message { app_id: app_id.clone(), dev_id: dev_id.clone(), event });
    }
}

impl Join {
    /// Checks that the device sent it: it knows the key, and says the EUIs that are registered.
    fn check(&self, device: &Device) -> Result<(), Error> {
        let key = key(device)?;
        let lorawan = &device.lorawan;
        let is_same = lorawan.app_eui == self.request.app_eui
            && (device.is_template() || lorawan.dev_eui == self.request.dev_eui);
        if !is_same || self.request.dev_eui.is_zero() {
            return Err(Error::invalid("Activation", "AppEUI and DevEUI are not those of the device"));
        }
        if self.request.is_signed_with(key)? { Ok(()) } else { Err(Error::WrongMic) }
    }

    /// What the application is told, so far without an address.
    fn activation(&self) -> Activation {
        let JoinRequest { app_eui, dev_eui, .. } = self.request;
        Activation { app_eui, dev_eui, metadata: self.metadata.clone(), ..Activation::default() }
    }
}

fn key(device: &Device) -> Result<&AppKey, Error> {
    let key = device.lorawan.app_key.as_ref().filter(|key| !key.is_zero());
    key.ok_or_else(|| Error::NoAppKey { dev_id: device.dev_id.clone() })
}
