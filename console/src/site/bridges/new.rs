//! Checks and connects a network that is not in the settings yet, shows its first uplink, and prints the entry for the
//! settings. Credentials are in no page, and are kept nowhere.

mod form;

use askama::Template;
use axum::{extract::Query, http::StatusCode};

use self::form::NetworkForm;
use crate::{
    form::drafts::Fields,
    site::{
        failure::Problem,
        page::{Frame, Page, pretty, shown},
        viewer::{Operator, Sent},
    },
    status::{CheckResult, NetworkTrial, TrialCheck, TriedUplink},
};

/// Class of the badge of a check that failed.
const BAD: &str = "bad";

#[derive(Template)]
#[template(path = "bridge_new.html")]
pub(in crate::site) struct New {
    frame: Frame,
    form: NetworkForm,
    problem: Option<Problem>,
    /// Empty if nothing was tried.
    checks: Vec<Check>,
    /// None if nothing was tried, or it failed.
    success: Option<Success>,
}

/// A check of what was entered.
struct Check {
    what: &'static str,
    /// Class of its badge in the style sheet.
    class: &'static str,
    result: &'static str,
    text: String,
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
    ours: CodecOutput,
    theirs: CodecOutput,
}

/// The object that a codec returned, or why it returned none.
struct CodecOutput {
    is_decoded: bool,
    text: String,
}

/// The empty form, or with the application that a link names.
pub(in crate::site) async fn show(operator: Operator, Query(fields): Query<Fields>) -> Page<New> {
    untried(operator, NetworkForm::for_application(Sent(fields).value("app_id")))
}

fn untried(Operator { frame, unconfirmed, .. }: Operator, form: NetworkForm) -> Page<New> {
    Page::new(New { frame, form, problem: unconfirmed, checks: Vec::new(), success: None })
}

/// The page with a form that was sent when the login had expired. Its secrets are not kept.
pub(in crate::site) async fn draft(operator: Operator, sent: &Sent) -> Page<New> {
    let mut page = untried(operator, NetworkForm::of(sent));
    let New { problem, .. } = page.template_mut();
    let text = "Your login had expired. Enter the API key and the password again: the console does not keep them.";
    problem.get_or_insert(Problem::new("The network was not tried", text.to_owned()));
    page
}

pub(in crate::site) async fn submit(operator: Operator, sent: Sent) -> Page<New> {
    let Operator { console, session, frame, unconfirmed } = operator;
    let form = NetworkForm::of(&sent);
    let refused = |problem| {
        Page::new(New {
            frame: frame.clone(),
            form: form.clone(),
            problem: Some(problem),
            checks: Vec::new(),
            success: None,
        })
    };
    if let Some(problem) = unconfirmed {
        return refused(problem);
    }
    let (app_id, network) = match form.network() {
        Ok(parts) => parts,
        Err(reason) => {
            let problem = Problem::new("Invalid input", reason.to_owned());
            return refused(problem).with_status(StatusCode::BAD_REQUEST);
        }
    };
    let Some(source) = console.status() else {
        let text = "The handler does not run in this process, or is just starting.".to_owned();
        return refused(Problem::new("The network was not tried", text));
    };
    let NetworkTrial { checks, uplink } = source.try_network(&session.user_id, &app_id, network).await;
    let checks: Vec<_> = checks.into_iter().map(Check::of).collect();
    let failed = checks.iter().find(|check| check.class == BAD);
    let problem =
        failed.map(|Check { what, text, .. }| Problem::new("The network cannot be used", format!("{what}: {text}")));
    let success = problem.is_none().then(|| Success {
        uplink: uplink.map(|uplink| Uplink::of(uplink, &form)),
        settings: form.settings(),
        files: form.files(),
    });
    Page::new(New { frame, form, problem, checks, success })
}

impl Check {
    fn of(TrialCheck { what, result }: TrialCheck) -> Self {
        let (class, result, text) = match result {
            CheckResult::Passed(text) => ("good", "passed", text),
            CheckResult::Uncertain(text) => ("", "not certain", text),
            CheckResult::Failed(text) => (BAD, "failed", text),
        };
        Self { what, class, result, text: shown(&text) }
    }
}

impl Uplink {
    fn of(uplink: TriedUplink, form: &NetworkForm) -> Self {
        let TriedUplink { application_id: id, application_name: name, codec, ours, theirs } = uplink;
        let is_taken = [&id, &name].contains(&&form.application);
        let application = if name.is_empty() { shown(&id) } else { format!("{} ({})", shown(&name), shown(&id)) };
        Self {
            application,
            is_taken,
            codec: shown(&codec),
            ours: CodecOutput::of(ours),
            theirs: CodecOutput::of(theirs),
        }
    }
}

impl CodecOutput {
    fn of(result: Result<String, String>) -> Self {
        match result {
            Ok(json) => Self { is_decoded: true, text: pretty(&json) },
            Err(reason) => Self { is_decoded: false, text: shown(&reason) },
        }
    }
}
