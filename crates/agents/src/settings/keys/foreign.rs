//! Keys of other programs that claw knows and does not use: a note, never a warning.

/// A key that claw leaves to the program it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Foreign {
    /// As written.
    pub name: &'static str,
    /// What claw does instead.
    pub note: &'static str,
}

const fn unused(name: &'static str) -> Foreign {
    Foreign { name, note: "not used by claw" }
}

const fn instead(name: &'static str, note: &'static str) -> Foreign {
    Foreign { name, note }
}

/// What approves servers there does nothing here: see `claw trust`.
const TRUST: &str = "not used by claw: decide on servers with `claw trust`";

/// All of them.
pub const FOREIGN: &[Foreign] = &[
    unused("$schema"),
    instead("enableAllProjectMcpServers", TRUST),
    instead("enabledMcpjsonServers", TRUST),
    instead("disabledMcpjsonServers", TRUST),
    instead("allowedMcpServers", TRUST),
    instead("deniedMcpServers", TRUST),
    instead("disableAllHooks", "not used by claw: remove the hooks, or do not trust them"),
    instead("otelHeadersHelper", "not used by claw, and never run"),
    instead("awsAuthRefresh", "not used by claw, and never run"),
    instead("awsCredentialExport", "not used by claw, and never run"),
    instead("forceLoginMethod", "not used by claw"),
    unused("alwaysThinkingEnabled"),
    unused("autoUpdates"),
    unused("autoUpdatesChannel"),
    unused("cleanupPeriodDays"),
    unused("companyAnnouncements"),
    unused("effortLevel"),
    unused("extraKnownMarketplaces"),
    unused("fastMode"),
    unused("fileSuggestion"),
    unused("forceLoginOrgUUID"),
    unused("hasTrustDialogAccepted"),
    unused("includeCoAuthoredBy"),
    unused("attribution"),
    unused("language"),
    unused("outputStyle"),
    unused("plansDirectory"),
    unused("preferredNotifChannel"),
    unused("respectGitignore"),
    unused("showTurnDuration"),
    unused("skippedMarketplaces"),
    unused("skippedPlugins"),
    unused("skipDangerousModePermissionPrompt"),
    unused("spinnerTipsEnabled"),
    unused("spinnerVerbs"),
    unused("teammateMode"),
    unused("terminalProgressBarEnabled"),
    unused("verbose"),
    unused("voiceEnabled"),
];
