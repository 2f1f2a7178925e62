//! Gates.

use super::build::{Build, Visible};
use super::model::{GateWork, OnTimeout};
use crate::workflow::file::NodeFile;

impl<'a> Build<'a> {
    pub(super) fn gate(&mut self, node: &'a NodeFile, visible: &Visible<'_>) -> Option<GateWork> {
        let keys = &node.keys;
        let message = self.optional_template(node, keys, "message", visible);
        let mut show = Vec::new();
        for value in keys.list("show") {
            let spot = self.spot(node, "show", value);
            show.extend(self.expr(&spot, value.text().unwrap_or_default(), visible));
        }
        let choices = match keys.get("choices") {
            Some(_) => keys.texts("choices"),
            None => ["approve", "reject"].map(str::to_owned).to_vec(),
        };
        Some(GateWork {
            message: message?,
            show,
            choices,
            default: keys.text("default").map(str::to_owned),
            on_timeout: match keys.text("on_timeout") {
                None | Some("pause") => OnTimeout::Pause,
                Some(choice) => OnTimeout::Choose(choice.to_owned()),
            },
        })
    }
}
