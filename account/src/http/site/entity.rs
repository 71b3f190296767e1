//! Common parts of the pages of applications and gateways.

pub(in crate::http::site) mod collaborators;

use types::{ApplicationRight, GatewayRight};

use super::page::labels;
use crate::{
    Error, Result,
    entity::{Entity, Rights, application::Application, gateway::Gateway},
    http::path::EntityInPath,
};

pub(in crate::http::site) trait SiteEntity: EntityInPath {
    const PLURAL: &'static str;

    fn label(right: Self::Right) -> &'static str;
}

#[derive(Debug)]
pub(in crate::http::site) struct RightCheckbox {
    /// The right's name in the API.
    pub(in crate::http::site) name: &'static str,
    pub(in crate::http::site) label: &'static str,
    /// True if the viewer has the right and can grant it.
    pub(in crate::http::site) grantable: bool,
}

impl SiteEntity for Application {
    const PLURAL: &'static str = "applications";

    fn label(right: ApplicationRight) -> &'static str {
        labels::application_right(right)
    }
}

impl SiteEntity for Gateway {
    const PLURAL: &'static str = "gateways";

    fn label(right: GatewayRight) -> &'static str {
        labels::gateway_right(right)
    }
}

pub(in crate::http::site) fn path<E: SiteEntity>(id: &E::Id) -> String {
    format!("/my/{}/{id}", E::PLURAL)
}

pub(in crate::http::site) fn collaborators_path<E: SiteEntity>(id: &E::Id) -> String {
    format!("{}/collaborators", path::<E>(id))
}

/// Checkboxes for all rights, of which the viewer can grant those `held`.
pub(in crate::http::site) fn checkboxes<E: SiteEntity>(held: &Rights<E::Right>) -> Vec<RightCheckbox> {
    let one = |right: &E::Right| RightCheckbox {
        name: (*right).into(),
        label: E::label(*right),
        grantable: held.contains(right),
    };
    E::RIGHTS.iter().map(one).collect()
}

pub(in crate::http::site) fn parse_rights<'a, E: Entity>(
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<E::Right>> {
    let parse = |name: &str| {
        let found = E::RIGHTS.iter().copied().find(|right| Into::<&'static str>::into(*right) == name);
        found.ok_or(Error::Invalid { what: "rights", must: "must be from the list" })
    };
    names.map(parse).collect()
}
