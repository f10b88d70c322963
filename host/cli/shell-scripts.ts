/** Scripts that teach a shell to ask `berthctl __complete`. They pass words of the user, and never evaluate them. */

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

const BASH = `# bash completion of berthctl: source <(berthctl completion bash)
_berthctl() {
    local line last
    local -a words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
    COMPREPLY=()
    while IFS= read -r line; do
        last=$line
        case $line in
        :*) ;;
        *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
        esac
    done < <("\${COMP_WORDS[0]}" __complete "\${words[@]}" 2>/dev/null)
    if [[ $last == :0 ]]; then
        compopt -o default 2>/dev/null || true
    fi
    # Bash breaks a word at "="; what stands before is in the line already.
    if [[ \${COMP_WORDS[COMP_CWORD]} == = || ( COMP_CWORD -gt 0 && \${COMP_WORDS[COMP_CWORD-1]} == = ) ]]; then
        COMPREPLY=("\${COMPREPLY[@]#*=}")
    fi
    return 0
}
complete -F _berthctl berthctl
`;

const ZSH = `#compdef berthctl
# zsh completion of berthctl: source <(berthctl completion zsh)
_berthctl() {
    local line last
    local -a candidates
    while IFS= read -r line; do
        last=$line
        [[ $line == :* ]] && continue
        candidates+=("\${\${line//:/\\\\:}/$'\\t'/:}")
    done < <("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( \${#candidates} )); then
        _describe berthctl candidates
    elif [[ $last == :0 ]]; then
        _files
    fi
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _berthctl "$@"
else
    compdef _berthctl berthctl
fi
`;

const FISH = `# fish completion of berthctl: berthctl completion fish | source
function __berthctl_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l lines ($words[1] __complete $words[2..-1] "$typed" 2>/dev/null)
    if test (count $lines) -eq 1; and test "$lines[1]" = ":0"
        __fish_complete_path "$typed"
        return
    end
    for line in $lines
        string match -q -- ':*' $line; or echo $line
    end
end
complete -c berthctl -f -a '(__berthctl_complete)'
`;

export const SHELL_SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH };
