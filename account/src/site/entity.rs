//! What the pages of applications and gateways have in common.

pub(in crate::site) mod collaborators;

use types::{ApplicationRight, GatewayRight};

use super::page::labels;
use crate::{
    Error, Result,
    application::Application,
    entity::{Entity, Rights},
    gateway::Gateway,
    http::path::EntityInPath,
};

/// A sort of entity with pages.
pub(in crate::site) trait SiteEntity: EntityInPath {
    /// What many of them are called in paths.
    const PLURAL: &'static str;

    /// Describes a right for people.
    fn words(right: Self::Right) -> &'static str;
}

/// A box to tick for one right.
#[derive(Debug)]
pub(in crate::site) struct RightCheckbox {
    /// The right as interfaces spell it.
    pub(in crate::site) name: &'static str,
    /// What it lets one do.
    pub(in crate::site) words: &'static str,
    /// Whether the viewer may give it; nobody gives what they do not have.
    pub(in crate::site) grantable: bool,
}

impl SiteEntity for Application {
    const PLURAL: &'static str = "applications";

    fn words(right: ApplicationRight) -> &'static str {
        labels::application_right(right)
    }
}

impl SiteEntity for Gateway {
    const PLURAL: &'static str = "gateways";

    fn words(right: GatewayRight) -> &'static str {
        labels::gateway_right(right)
    }
}

/// Where the page of an entity is.
pub(in crate::site) fn path<E: SiteEntity>(id: &E::Id) -> String {
    format!("/my/{}/{id}", E::PLURAL)
}

/// Where the page with its collaborators is.
pub(in crate::site) fn collaborators_path<E: SiteEntity>(id: &E::Id) -> String {
    format!("{}/collaborators", path::<E>(id))
}

/// The checkboxes for all rights, for somebody with `own`.
pub(in crate::site) fn checkboxes<E: SiteEntity>(own: &Rights<E::Right>) -> Vec<RightCheckbox> {
    let one =
        |right: &E::Right| RightCheckbox { name: (*right).into(), words: E::words(*right), grantable: own.contains(right) };
    E::RIGHTS.iter().map(one).collect()
}

/// Reads the checkboxes that were ticked.
pub(in crate::site) fn parse_rights<'a, E: Entity>(names: impl Iterator<Item = &'a str>) -> Result<Vec<E::Right>> {
    let parse = |name: &str| {
        let found = E::RIGHTS.iter().copied().find(|right| Into::<&'static str>::into(*right) == name);
        found.ok_or(Error::Invalid { what: "rights", must: "must be some of those in the list" })
    };
    names.map(parse).collect()
}
