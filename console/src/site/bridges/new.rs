//! Connects to a network that is not in the settings yet, shows its first uplink, and prints the entry for the settings.
//! Credentials are in no page, and are kept nowhere.

mod form;

use askama::Template;
use axum::http::StatusCode;

use self::form::NetworkForm;
use super::section::shown;
use crate::{
    site::{
        failure::Problem,
        page::{Frame, Page, pretty},
        viewer::{Operator, Sent},
    },
    status::{NetworkTrial, TriedUplink},
};

#[derive(Template)]
#[template(path = "bridge_new.html")]
pub(in crate::site) struct New {
    frame: Frame,
    form: NetworkForm,
    problem: Option<Problem>,
    /// None if nothing was tried, or it failed.
    success: Option<Success>,
}

/// A network that can be used.
struct Success {
    /// None if no uplink came.
    uplink: Option<Uplink>,
    /// The entry for the settings.
    settings: String,
    /// Files to write before, each with what it must hold.
    files: Vec<(&'static str, &'static str)>,
}

/// The first uplink.
struct Uplink {
    /// The id of its application in the network, with its name if that is known.
    application: String,
    /// True if the settings are for that application.
    is_taken: bool,
    codec: String,
    ours: Outcome,
    theirs: Outcome,
}

/// What a codec made of it.
struct Outcome {
    is_decoded: bool,
    text: String,
}

pub(in crate::site) async fn show(Operator { frame, unconfirmed, .. }: Operator) -> Page<New> {
    Page::new(New { frame, form: NetworkForm::default(), problem: unconfirmed, success: None })
}

pub(in crate::site) async fn submit(operator: Operator, sent: Sent) -> Page<New> {
    let Operator { console, session, frame, unconfirmed } = operator;
    let form = NetworkForm::of(&sent);
    let page = |problem, success| Page::new(New { frame, form: form.clone(), problem, success });
    if unconfirmed.is_some() {
        return page(unconfirmed, None);
    }
    let invalid = |text| Some(Problem { title: "Invalid input", text });
    let (app_id, network) = match form.network() {
        Ok(parts) => parts,
        Err(reason) => return page(invalid(reason.to_owned()), None).with_status(StatusCode::BAD_REQUEST),
    };
    let Some(source) = console.status() else {
        let text = "The handler does not run in this process, or is just starting.".to_owned();
        return page(Some(Problem { title: "The network was not tried", text }), None);
    };
    let uplink = match source.try_network(&session.user_id, &app_id, network).await {
        NetworkTrial::NotRegistered => {
            let text = format!(
                "The application here, {app_id}, is not registered with this handler. Add it with `airlock applications \
                 add`, or register it on its page in the console."
            );
            return page(invalid(text), None).with_status(StatusCode::BAD_REQUEST);
        }
        NetworkTrial::Failed(reason) => {
            let problem = Problem { title: "The network cannot be used", text: shown(&reason) };
            return page(Some(problem), None);
        }
        NetworkTrial::Silent => None,
        NetworkTrial::Heard(uplink) => Some(Uplink::of(uplink, &form)),
    };
    let success = Success { uplink, settings: form.settings(), files: form.files() };
    page(None, Some(success))
}

impl Uplink {
    fn of(uplink: TriedUplink, form: &NetworkForm) -> Self {
        let TriedUplink { application_id: id, application_name: name, codec, ours, theirs } = uplink;
        let is_taken = [&id, &name].contains(&&form.application);
        let application = if name.is_empty() { shown(&id) } else { format!("{} ({})", shown(&name), shown(&id)) };
        Self { application, is_taken, codec: shown(&codec), ours: Outcome::of(ours), theirs: Outcome::of(theirs) }
    }
}

impl Outcome {
    fn of(result: Result<String, String>) -> Self {
        match result {
            Ok(json) => Self { is_decoded: true, text: pretty(&json) },
            Err(reason) => Self { is_decoded: false, text: shown(&reason) },
        }
    }
}
