//! Which folder a run belongs to.

use std::path::{Path, PathBuf};

/// The top of the git work tree around `cwd`, else `cwd`. A `.git` file (a linked work tree) counts as well.
pub fn project_top(cwd: &Path) -> PathBuf {
    cwd.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(cwd).to_owned()
}

/// How a run names its workflow file: relative to the project where it lies in it, so that a project that was moved
/// still knows its runs; else the whole path. Symlinks are followed where the file exists.
pub fn workflow_name_in(project: &Path, file: &Path) -> PathBuf {
    let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (project, file) = (whole(project), whole(file));
    file.strip_prefix(&project).map(Path::to_owned).unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_the_top_of_the_work_tree_else_the_folder_itself() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        assert_eq!(project_top(&deep), deep);
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        assert_eq!(project_top(&deep), folder.path());
        assert_eq!(workflow_name_in(folder.path(), &deep.join("../b")), Path::new("a/b"));
    }
}
