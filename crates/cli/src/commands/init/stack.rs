//! What a project is made of, read from the files that say so. Reads, and runs nothing.

use serde_json::Value;
use std::path::Path;

/// Bytes of a file that are looked at.
const MOST: usize = 256 * 1024;

/// Languages and the commands that check the work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stack {
    /// Such as `Rust (cargo workspace)`.
    pub(super) parts: Vec<String>,
    /// Command and what it checks.
    pub(super) checks: Vec<(String, &'static str)>,
}

impl Stack {
    pub(super) fn of(folder: &Path) -> Self {
        let mut stack = Self::default();
        stack.rust(folder);
        stack.node(folder);
        stack.python(folder);
        stack.others(folder);
        stack.make(folder);
        stack
    }

    fn check(&mut self, command: impl Into<String>, what: &'static str) {
        self.checks.push((command.into(), what));
    }

    fn rust(&mut self, folder: &Path) {
        let Some(manifest) = read(folder, "Cargo.toml") else { return };
        let is_workspace = manifest.lines().any(|line| line.trim() == "[workspace]");
        self.parts.push(if is_workspace { "Rust (cargo workspace)" } else { "Rust (cargo)" }.to_owned());
        let all = if is_workspace { " --workspace" } else { "" };
        self.check("cargo fmt --all --check", "format");
        self.check(format!("cargo clippy{all} --all-targets"), "lints");
        self.check(format!("cargo test{all}"), "tests");
    }

    fn node(&mut self, folder: &Path) {
        let Some(manifest) = read(folder, "package.json") else { return };
        let manifest: Value = serde_json::from_str(&manifest).unwrap_or_default();
        let tool =
            [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")]
                .into_iter()
                .find_map(|(lock, tool)| folder.join(lock).exists().then_some(tool))
                .unwrap_or("npm");
        let language = if folder.join("tsconfig.json").exists() { "TypeScript" } else { "JavaScript" };
        self.parts.push(format!("{language} ({tool})"));
        let scripts = [
            ("format", "format"),
            ("lint", "lints"),
            ("typecheck", "types"),
            ("check", "checks"),
            ("build", "build"),
            ("test", "tests"),
        ];
        for (script, what) in scripts {
            if manifest["scripts"][script].is_string() {
                self.check(format!("{tool} run {script}"), what);
            }
        }
    }

    fn python(&mut self, folder: &Path) {
        let project = read(folder, "pyproject.toml");
        let old = ["setup.py", "setup.cfg", "requirements.txt"].iter().any(|name| folder.join(name).exists());
        if project.is_none() && !old {
            return;
        }
        self.parts.push("Python".to_owned());
        let project = project.unwrap_or_default();
        let run = if folder.join("uv.lock").exists() { "uv run " } else { "" };
        for (sign, command, what) in
            [("ruff", "ruff check .", "lints"), ("mypy", "mypy .", "types"), ("pytest", "pytest", "tests")]
        {
            if project.contains(sign) || sign == "pytest" && folder.join("tests").is_dir() {
                self.check(format!("{run}{command}"), what);
            }
        }
    }

    fn others(&mut self, folder: &Path) {
        if folder.join("go.mod").exists() {
            self.parts.push("Go".to_owned());
            self.check("go vet ./...", "lints");
            self.check("go test ./...", "tests");
        }
        if folder.join("pom.xml").exists() {
            self.parts.push("Java (Maven)".to_owned());
            self.check("mvn -q verify", "build and tests");
        }
        if ["build.gradle", "build.gradle.kts"].iter().any(|name| folder.join(name).exists()) {
            self.parts.push("JVM (Gradle)".to_owned());
            self.check("./gradlew check", "build and tests");
        }
        if folder.join("Gemfile").exists() {
            self.parts.push("Ruby".to_owned());
            self.check("bundle exec rake", "tests");
        }
        if folder.join("CMakeLists.txt").exists() {
            self.parts.push("C or C++ (CMake)".to_owned());
            self.check("cmake -B build && cmake --build build", "build");
        }
    }

    fn make(&mut self, folder: &Path) {
        let Some(file) = read(folder, "Makefile") else { return };
        self.parts.push("make".to_owned());
        let has = |target: &str| file.lines().any(|line| line.starts_with(&format!("{target}:")));
        for (target, what) in [("lint", "lints"), ("check", "checks"), ("test", "tests")] {
            if has(target) {
                self.check(format!("make {target}"), what);
            }
        }
    }
}

fn read(folder: &Path, name: &str) -> Option<String> {
    let path = folder.join(name);
    if !path.metadata().is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let mut text = std::fs::read_to_string(path).ok()?;
    text.truncate(text.floor_char_boundary(MOST.min(text.len())));
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kernel::durable::create;

    #[test]
    fn the_files_say_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| create(&folder.path().join(name), text.as_bytes()).unwrap();
        assert_eq!(Stack::of(folder.path()), Stack::default());
        put("Cargo.toml", "[workspace]\nmembers = []\n");
        put("package.json", r#"{"scripts": {"test": "vitest", "lint": "eslint ."}}"#);
        put("pnpm-lock.yaml", "");
        put("Makefile", "all:\n\ntest: all\n\techo\n");
        let stack = Stack::of(folder.path());
        assert_eq!(stack.parts, ["Rust (cargo workspace)", "JavaScript (pnpm)", "make"]);
        let commands: Vec<&str> = stack.checks.iter().map(|(command, _)| command.as_str()).collect();
        assert_eq!(
            commands,
            [
                "cargo fmt --all --check",
                "cargo clippy --workspace --all-targets",
                "cargo test --workspace",
                "pnpm run lint",
                "pnpm run test",
                "make test"
            ]
        );
    }
}
