//! Parses requests and writes responses.
//!
//! A REST body is the one wire type of an object: gRPC messages are turned into it first, so both interfaces share the
//! conversions here.

pub(crate) mod attributes;
pub(crate) mod candidate;
pub(crate) mod chart;
pub(crate) mod decode_again;
pub(crate) mod device_move;
pub(crate) mod downlink;
mod dry_run;
pub(crate) mod export;
pub(crate) mod find;
pub(crate) mod history;
mod join;
pub(crate) mod send_again;
pub(crate) mod uplinks;
pub(crate) mod version;

use api::rest::handler::{Device as DeviceBody, HandlerApplication, LorawanDevice};
use runtime::Sources;
use types::{AppId, DevId};

pub(crate) use self::dry_run::{dry_run_application, uplink_input};
use crate::{
    Error,
    api::operations::SimulatedUplink,
    registry::{
        application::{Application, SentApplication},
        device::{Device, Lorawan},
    },
};

pub(crate) fn app_id(text: &str) -> Result<AppId, Error> {
    Ok(text.parse()?)
}

pub(crate) fn device_ids(app_id: &str, dev_id: &str) -> Result<(AppId, DevId), Error> {
    Ok((app_id.parse()?, dev_id.parse()?))
}

impl TryFrom<HandlerApplication> for SentApplication {
    type Error = Error;

    fn try_from(body: HandlerApplication) -> Result<Self, Error> {
        let HandlerApplication { decoder, converter, validator, encoder, .. } = body;
        let sources = Sources { decoder, converter, validator, encoder, ..Sources::default() };
        let key = Some(body.register_on_join_access_key).filter(|key| !key.is_empty());
        let key = key.map(|key| key.parse().map_err(|error| Error::invalid("RegisterOnJoinAccessKey", error)));
        Ok(Self {
            app_id: body.app_id.parse()?,
            payload_format: body.payload_format,
            sources,
            register_on_join_access_key: key.transpose()?,
        })
    }
}

impl From<Application> for HandlerApplication {
    fn from(application: Application) -> Self {
        let (summary, sources) = application.into_parts();
        Self {
            app_id: summary.app_id.into(),
            payload_format: summary.payload_format,
            decoder: sources.decoder,
            converter: sources.converter,
            validator: sources.validator,
            encoder: sources.encoder,
            register_on_join_access_key: summary.register_on_join_access_key.map(String::from).unwrap_or_default(),
        }
    }
}

impl TryFrom<DeviceBody> for Device {
    type Error = Error;

    fn try_from(body: DeviceBody) -> Result<Self, Error> {
        let Some(lorawan) = body.lorawan_device else {
            return Err(Error::invalid("Device", "lorawan_device is missing"));
        };
        let (app_id, dev_id) = device_ids(&body.app_id, &body.dev_id)?;
        if lorawan.app_id != app_id.as_str() || lorawan.dev_id != dev_id.as_str() {
            let rule = "app_id and dev_id of lorawan_device must be those of the device";
            return Err(Error::invalid("Device", rule));
        }
        Ok(Self {
            app_id,
            dev_id,
            description: body.description,
            latitude: body.latitude,
            longitude: body.longitude,
            altitude: body.altitude,
            attributes: body.attributes,
            lorawan: lorawan.into(),
        })
    }
}

impl From<Device> for DeviceBody {
    fn from(device: Device) -> Self {
        let (app_id, dev_id) = (String::from(device.app_id), String::from(device.dev_id));
        let lorawan = device.lorawan;
        Self {
            lorawan_device: Some(LorawanDevice {
                app_eui: lorawan.app_eui,
                dev_eui: lorawan.dev_eui,
                app_id: app_id.clone(),
                dev_id: dev_id.clone(),
                dev_addr: Some(lorawan.dev_addr.unwrap_or_default()),
                nwk_s_key: Some(lorawan.nwk_s_key.unwrap_or_default()),
                app_s_key: Some(lorawan.app_s_key.unwrap_or_default()),
                app_key: Some(lorawan.app_key.unwrap_or_default()),
                f_cnt_up: lorawan.f_cnt_up,
                f_cnt_down: lorawan.f_cnt_down,
                disable_f_cnt_check: lorawan.disable_f_cnt_check,
                uses32_bit_f_cnt: lorawan.uses32_bit_f_cnt,
                activation_constraints: lorawan.activation_constraints,
                last_seen: lorawan.last_seen,
            }),
            app_id,
            dev_id,
            latitude: device.latitude,
            longitude: device.longitude,
            altitude: device.altitude,
            attributes: device.attributes,
            description: device.description,
        }
    }
}

impl From<LorawanDevice> for Lorawan {
    fn from(body: LorawanDevice) -> Self {
        let constraints = body.activation_constraints;
        Self {
            app_eui: body.app_eui,
            dev_eui: body.dev_eui,
            dev_addr: body.dev_addr,
            nwk_s_key: body.nwk_s_key,
            app_s_key: body.app_s_key,
            app_key: body.app_key,
            f_cnt_up: body.f_cnt_up,
            f_cnt_down: body.f_cnt_down,
            disable_f_cnt_check: body.disable_f_cnt_check,
            uses32_bit_f_cnt: body.uses32_bit_f_cnt,
            activation_constraints: if constraints.is_empty() { "local".to_owned() } else { constraints },
            // The network says it, not the caller.
            last_seen: 0,
        }
    }
}

impl TryFrom<api::rest::handler::SimulatedUplink> for SimulatedUplink {
    type Error = Error;

    fn try_from(body: api::rest::handler::SimulatedUplink) -> Result<Self, Error> {
        Ok(Self { app_id: body.app_id.parse()?, dev_id: body.dev_id.parse()?, port: body.port, payload: body.payload })
    }
}

impl TryFrom<api::handler::SimulatedUplinkMessage> for SimulatedUplink {
    type Error = Error;

    fn try_from(message: api::handler::SimulatedUplinkMessage) -> Result<Self, Error> {
        let api::handler::SimulatedUplinkMessage { app_id, dev_id, payload, port } = message;
        Ok(Self { app_id: app_id.parse()?, dev_id: dev_id.parse()?, port, payload })
    }
}
