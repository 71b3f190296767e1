//! The page of bridges: each network with its connections, rate, lag, failures and routes. It is for operators, and
//! changes nothing.

pub(super) mod new;
mod section;
mod shadow;

use askama::Template;

use self::{section::Section, shadow::Shadow};
use super::{
    failure::{Failure, Problem},
    operator::own_applications,
    page::{Frame, Page},
    viewer::Operator,
};
use crate::{
    Error,
    console::ConsoleAddress,
    status::{Count, NetworksStatus},
};

#[derive(Template)]
#[template(path = "bridges.html")]
pub(super) struct Show {
    frame: Frame,
    /// The reason why nothing is shown.
    unconfirmed: Option<Problem>,
    /// None where only the console runs, and while the login cannot be confirmed.
    view: Option<View>,
}

/// The networks, as the page shows them.
struct View {
    sections: Vec<Section>,
    shadows: Vec<Shadow>,
    counts: Vec<Count>,
}

pub(super) async fn show(Operator { console, session, frame, unconfirmed }: Operator) -> Result<Page<Show>, Failure> {
    let view = match (console.status(), &*console.place) {
        _ if unconfirmed.is_some() => None,
        (Some(source), _) => {
            let NetworksStatus { networks, shadows, counts } = source.networks().await;
            let own = own_applications(&console, &session).await;
            let sections = networks.into_iter().map(|network| Section::of(network, &own)).collect();
            Some(View { sections, shadows: shadows.into_iter().map(Shadow::of).collect(), counts })
        }
        (None, ConsoleAddress::Alone { .. }) => None,
        (None, ConsoleAddress::WithAccount { .. }) => return Err(Error::Starting.into()),
    };
    Ok(Page::new(Show { frame, unconfirmed, view }))
}
