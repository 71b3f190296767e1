//! Claiming EUIs: each belongs to at most one application, even if several want it at the same time.
//!
//! A claim is a document of its own. First the application records that it is claiming, then the claim is written, then
//! the EUI is listed in the application. A claim whose application neither lists the EUI nor is claiming it is left
//! over from a crash, and another application may take it over. Every claimant rewrites the claim, so a concurrent
//! takeover fails on its version.

use serde::{Deserialize, Serialize};
use store::{Key, Tag};
use types::{AppEui, AppId, ApplicationRight};

use super::{Application, ApplicationRights, eui::EUIS_MAX};
use crate::{
    Account, Error, Result,
    documents::{Document, retried},
    entity::{
        access::{Caller, Requires},
        not_found,
    },
};

/// Number of EUIs drawn before the block counts as full. With one in thirty free, drawing almost certainly succeeds.
const DRAWS_MAX: usize = 200;
/// Number of drawn EUIs that may be lost to other applications.
const CLAIMS_MAX: usize = 20;

/// The application that owns an EUI.
#[derive(Debug, Serialize, Deserialize)]
struct Claim {
    app_id: AppId,
}

impl Account {
    /// Adds a random EUI of the configured block to an application.
    pub(crate) async fn add_drawn_eui(&self, caller: &Caller, app_id: &AppId) -> Result<AppEui> {
        let check = |application: &mut Application, _: &ApplicationRights| check_room(application);
        let drawn = async {
            self.change_as(caller, app_id, Requires::Right(ApplicationRight::Settings), check).await?;
            self.draw_eui(app_id).await
        };
        let change = self.audit.change("EUI added", caller, app_id)?;
        change.run_on(drawn, |eui| format!("{app_id}/{eui}")).await
    }

    /// Adds this EUI to an application. Fails if another application has it.
    pub(crate) async fn add_eui(&self, caller: &Caller, app_id: &AppId, eui: AppEui) -> Result<()> {
        let begin = |application: &mut Application, _: &ApplicationRights| begin(application, eui);
        let added = async {
            // A listed EUI already has its claim. Rewriting that could outlive a concurrent removal that has read it.
            match self.change_as(caller, app_id, Requires::Right(ApplicationRight::Settings), begin).await? {
                true => self.finish_claim(app_id, eui).await,
                false => Ok(()),
            }
        };
        let change = self.audit.change("EUI added", caller, &format_args!("{app_id}/{eui}"))?;
        change.run(added).await
    }

    /// Removes an EUI from an application, after which another one may claim it.
    pub(crate) async fn remove_eui(&self, caller: &Caller, app_id: &AppId, eui: AppEui) -> Result<()> {
        // Read before the application gives it up: if another one claims it in between, its claim has another version.
        let claim = self.claim(eui).await?;
        let remove = |application: &mut Application, _: &ApplicationRights| {
            let before = application.euis.len();
            application.euis.retain(|listed| *listed != eui);
            let not_found = || Error::NotFound { what: "EUI", id: eui.to_string() };
            if application.euis.len() < before { Ok(()) } else { Err(not_found()) }
        };
        let removed = async {
            self.change_as(caller, app_id, Requires::Right(ApplicationRight::Settings), remove).await?;
            match claim.filter(|claim| claim.value.app_id == *app_id) {
                Some(claim) => self.documents.delete(&claim).await.map(drop),
                None => Ok(()),
            }
        };
        let change = self.audit.change("EUI removed", caller, &format_args!("{app_id}/{eui}"))?;
        change.run(removed).await
    }

    /// Draws a free EUI from the block and adds it.
    pub(crate) async fn draw_eui(&self, app_id: &AppId) -> Result<AppEui> {
        for _ in 0..CLAIMS_MAX {
            let eui = self.free_eui().await?;
            if !self.change(app_id, |application: &mut Application| begin(application, eui)).await? {
                continue;
            }
            match self.finish_claim(app_id, eui).await {
                Ok(()) => return Ok(eui),
                Err(Error::EuiTaken(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::EuiBlockFull)
    }

    /// Draws an EUI that is free at this moment.
    pub(crate) async fn free_eui(&self) -> Result<AppEui> {
        for _ in 0..DRAWS_MAX {
            let eui = self.settings.eui_block.draw(self.random.as_ref());
            if !eui.is_zero() && self.owner(eui).await?.is_none() {
                return Ok(eui);
            }
        }
        Err(Error::EuiBlockFull)
    }

    pub(crate) async fn check_free(&self, eui: AppEui, app_id: &AppId) -> Result<()> {
        match self.owner(eui).await? {
            Some(owner) if owner != *app_id => Err(Error::EuiTaken(eui)),
            _ => Ok(()),
        }
    }

    /// Writes the claim and lists the EUI. If another application has it, removes it from `claiming` instead.
    ///
    /// The EUI is listed only if the application is unchanged since before the claim was written. Otherwise the EUI may
    /// have been listed and removed in between, and belong to another application now.
    pub(crate) async fn finish_claim(&self, app_id: &AppId, eui: AppEui) -> Result<()> {
        let attempt = || async {
            let found = self.entity::<Application>(app_id).await?;
            let mut stored = found.ok_or_else(|| not_found::<Application>(app_id))?;
            if stored.value.euis.contains(&eui) {
                return Ok(Some(true));
            }
            if !stored.value.claiming.contains(&eui) {
                self.check_free(eui, app_id).await?;
                return Err(Error::Contended { what: "EUI" });
            }
            let won = self.write_claim(app_id, eui).await?;
            stored.value.claiming.retain(|claiming| *claiming != eui);
            stored.value.euis.extend(won.then_some(eui));
            Ok(self.documents.replace(&stored).await?.then_some(won))
        };
        if retried("EUI", attempt).await? { Ok(()) } else { Err(Error::EuiTaken(eui)) }
    }

    /// Completes claims that a crash interrupted. Readers of an application call this first.
    pub(crate) async fn complete_claims(&self, application: &mut Application) -> Result<()> {
        if application.claiming.is_empty() {
            return Ok(());
        }
        for eui in &application.claiming {
            match self.finish_claim(&application.id, *eui).await {
                Ok(()) | Err(Error::EuiTaken(_) | Error::Contended { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(completed) = self.entity::<Application>(&application.id).await? {
            *application = completed.value;
        }
        Ok(())
    }

    /// Tries to write the claim. Returns whether the application owns the EUI.
    async fn write_claim(&self, app_id: &AppId, eui: AppEui) -> Result<bool> {
        let claim = Claim { app_id: app_id.clone() };
        let attempt = || async {
            let written = match self.claim(eui).await? {
                None => self.documents.create(&claim_key(eui)?, &claim).await?,
                Some(other) if other.value.app_id != *app_id && self.is_live(&other, eui).await? => {
                    return Ok(Some(false));
                }
                Some(mut stored) => {
                    stored.value.app_id = app_id.clone();
                    self.documents.replace(&stored).await?
                }
            };
            Ok(written.then_some(true))
        };
        retried("EUI", attempt).await
    }

    async fn claim(&self, eui: AppEui) -> Result<Option<Document<Claim>>> {
        self.documents.read(&claim_key(eui)?).await
    }

    /// The application that has claimed an EUI.
    async fn owner(&self, eui: AppEui) -> Result<Option<AppId>> {
        let Some(claim) = self.claim(eui).await? else { return Ok(None) };
        Ok(self.is_live(&claim, eui).await?.then_some(claim.value.app_id))
    }

    /// Returns true if the application in a claim still lists or claims the EUI.
    async fn is_live(&self, claim: &Document<Claim>, eui: AppEui) -> Result<bool> {
        let owner = self.entity::<Application>(&claim.value.app_id).await?;
        Ok(owner.is_some_and(|owner| owner.value.euis.contains(&eui) || owner.value.claiming.contains(&eui)))
    }
}

/// Returns whether there is a claim to complete.
fn begin(application: &mut Application, eui: AppEui) -> Result<bool> {
    if application.euis.contains(&eui) {
        return Ok(false);
    }
    if !application.claiming.contains(&eui) {
        check_room(application)?;
        application.claiming.push(eui);
    }
    Ok(true)
}

fn check_room(application: &Application) -> Result<()> {
    if application.euis.len() + application.claiming.len() < EUIS_MAX {
        Ok(())
    } else {
        Err(Error::Full { what: "EUI", count_max: EUIS_MAX })
    }
}

fn claim_key(eui: AppEui) -> Result<Key> {
    Ok(Key::new(&Tag::named("e", &eui.to_string())?, "claim")?)
}
