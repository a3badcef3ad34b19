# bash reads this file, named by BASH_ENV, before the text of a timed command: it says that it is ready, and waits until
# the clock runs. Afterwards the environment is that of the step.
unset BASH_ENV
if [ -n "${PERFFLOW_BASH_ENV+set}" ]; then
    export BASH_ENV="$PERFFLOW_BASH_ENV"
    unset PERFFLOW_BASH_ENV
    [ ! -r "$BASH_ENV" ] || . "$BASH_ENV"
fi
{ printf . >&60 && read -r -u 61; } 2> /dev/null || :
unset REPLY
exec 60>&- 61<&-
