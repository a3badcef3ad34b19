#!/bin/sh
# Stands in for a compiler driver, by its name, first on PATH. While perfflow records a build, functions get a section
# each, and links of executables are written down. At all other times the driver is started as if this were not here.
name=${0##*/}
real= path=
set -f
IFS=:
for folder in $PATH; do
    folder=${folder:-.}
    # A folder of recorders that another run made holds no compiler either.
    [ -e "$folder/perfflow-recorder" ] && continue
    path=$path:$folder
    [ -z "$real" ] && [ -f "$folder/$name" ] && [ -x "$folder/$name" ] && real=$folder/$name
done
unset IFS
set +f
if [ -z "$real" ]; then
    echo "$name: not found on PATH (perfflow records links here)" >&2
    exit 127
fi
if [ ! -x "$PERFFLOW_LINK_PYTHON" ] || [ -z "$PERFFLOW_LINK_RECORDINGS" ]; then
    exec "$real" "$@"
fi
# ccache and its kind look for the next driver of this name: it must not be this one again.
PATH=${path#:}
export PATH
kind=link sections=-ffunction-sections before=
for word do
    # The name of the output says nothing.
    if [ "$before" = -o ]; then
        before=
        continue
    fi
    before=$word
    case $word in
    -c | -S) [ $kind = link ] && kind=compile ;;
    -E | -M | -MM | -fsyntax-only | -'###' | --version | --help* | --target-help | -dump* | -print* | --print*)
        kind=other
        ;;
    -r | -shared) [ $kind = link ] && kind=library ;;
    *.s | *.S | *.sx | assembler*) sections= ;;
    -fprofile-use* | -fbranch-probabilities | -fauto-profile* | -fprofile-instr-use* | -fprofile-sample-use*)
        # Not ":", a special builtin, whose failed redirection would end this script.
        true 2>/dev/null >"$PERFFLOW_LINK_RECORDINGS/profile-guided"
        ;;
    esac
done
case $kind in
compile | library) exec "$real" $sections "$@" ;;
link) exec "$PERFFLOW_LINK_PYTHON" -I -S "$PERFFLOW_LINK_RECORDER" "$PERFFLOW_LINK_RECORDINGS" "$real" "$@" ;;
*) exec "$real" "$@" ;;
esac
