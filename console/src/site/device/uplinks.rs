//! Uplinks as if the device had sent them.

use api::handler::SimulatedUplinkMessage;
use axum::response::{IntoResponse, Response};

use super::{
    dev_id, done,
    form::{Forms, UplinkForm, bytes, invalid},
    page, refused,
};
use crate::site::{
    failure::Failure,
    viewer::{InApplication, Sent},
};
use crate::{Error, Result};

/// The port of a form that names none, as that of the command line.
const PORT: u32 = 1;

pub(in crate::site) async fn simulate(request: InApplication, sent: Sent) -> Result<Response, Failure> {
    let uplink = UplinkForm::of(&sent);
    match send(&request, &uplink).await {
        Ok(()) => Ok(done(&request, "simulated")),
        Err(Error::LoggedOut) => Err(Error::LoggedOut.into()),
        Err(error) => {
            let forms = Forms { uplink, refused_field: "uplink-payload", ..Forms::default() };
            refused(&request, forms, &error).await
        }
    }
}

/// The page with a form that was sent when the login had expired, or a service was away.
pub(in crate::site) async fn draft(request: &InApplication, sent: &Sent) -> Result<Response, Failure> {
    let uplink = UplinkForm { is_draft: true, ..UplinkForm::of(sent) };
    Ok(page(request, Forms { uplink, ..Forms::default() }).await?.into_response())
}

async fn send(request: &InApplication, form: &UplinkForm) -> Result<()> {
    let port = match form.port.as_str() {
        "" => PORT,
        port => port.parse::<u32>().map_err(|_| invalid("port", "must be a number, such as 1"))?,
    };
    let payload = bytes(&form.payload)?;
    let (app_id, dev_id) = (request.app_id().to_string(), dev_id(request)?.to_string());
    let uplink = SimulatedUplinkMessage { app_id, dev_id, payload, port };
    request.handler().await?.simulate_uplink(uplink).await.map(drop).map_err(Error::from)
}
