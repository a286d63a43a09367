// completion and man: what the tree of verbs and options says, for shells and for man(1).

#include "commands.hpp"
#include "output.hpp"

#include <glassgrad/version.hpp>

#include <CLI/CLI.hpp>

#include <memory>
#include <vector>

namespace glassgrad::tools {
namespace {

/// The words that fit, from the `{a,b}` of its type; none for any.
std::vector<std::string> values_of(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    const std::size_t begin = type.find('{'), end = type.find('}');
    if (begin == type.npos || end == type.npos) return {};
    return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// f(name, option) for each flag, f("", option) for each positional argument.
template <class F>
void for_options(const CLI::App& verb, const F& f) {
    for (const CLI::Option* each : verb.get_options()) {
        for (const std::string& name : each->get_lnames()) f(name, *each);
        if (each->get_positional()) f(std::string(), *each);
    }
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
    for (std::size_t at = text.find(what); at != text.npos;
         at = text.find(what, at + with.size())) {
        text.replace(at, what.size(), with);
    }
    return text;
}

std::string bash_completion(const CLI::App& app) {
    std::string verbs, flags, values;
    for (const CLI::App* verb : app.get_subcommands({})) {
        verbs += verb->get_name() + ' ';
        std::string words, any;
        for_options(*verb, [&](const std::string& name, const CLI::Option& option) {
            const std::string at =
                verb->get_name() + ':' + (name.empty() ? verb->get_name() : "--" + name);
            const std::vector<std::string> fit = values_of(option);
            if (!name.empty()) words += " --" + name;
            if (!fit.empty()) {
                values += fmt::format("        {}) words=\"{}\" ;;\n", at, fmt::join(fit, " "));
            } else if (!name.empty() && takes_value(option)) {
                any += (any.empty() ? "" : "|") + at;
            }
        });
        // With no words the shell offers files.
        if (!any.empty()) values += fmt::format("        {}) ;;\n", any);
        flags +=
            fmt::format("            {}) words=\"{}\" ;;\n", verb->get_name(), words.substr(1));
    }
    return fmt::format(
        "# bash completion for glassgrad: source <(glassgrad completion bash)\n"
        "_glassgrad() {{\n"
        "    local words=\"\" verb=\"${{COMP_WORDS[1]}}\"\n"
        "    [ \"$COMP_CWORD\" -eq 1 ] && verb=\"\"\n"
        "    case \"$verb:${{COMP_WORDS[COMP_CWORD-1]}}\" in\n"
        "{}"
        "        *) case \"$verb\" in\n"
        "            \"\") words=\"{}--help\" ;;\n"
        "{}"
        "        esac ;;\n"
        "    esac\n"
        "    COMPREPLY=($(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n"
        "}}\n"
        "complete -o default -F _glassgrad glassgrad\n",
        values, verbs, flags);
}

std::string zsh_completion(const CLI::App& app) {
    const auto quoted = [](std::string text) {
        return "'" + replaced(std::move(text), "'", "'\\''") + "'";
    };
    // What ends a description or a part of it.
    const auto plain = [](std::string text) {
        for (const std::string_view each : {"[", "]", ":"}) {
            text = replaced(text, each, "\\" + std::string(each));
        }
        return text;
    };
    std::string verbs, cases;
    for (const CLI::App* verb : app.get_subcommands({})) {
        verbs += fmt::format(" \\\n        {}",
                             quoted(verb->get_name() + ":" + verb->get_description()));
        cases += fmt::format("        {}) _arguments", verb->get_name());
        for_options(*verb, [&](const std::string& name, const CLI::Option& option) {
            const std::vector<std::string> fit = values_of(option);
            const std::string words =
                fit.empty() ? "_files" : fmt::format("({})", fmt::join(fit, " "));
            std::string spec;
            if (name.empty()) {
                spec = fmt::format("1:{}:{}", plain(option.get_description()), words);
            } else {
                spec = fmt::format("--{}{}[{}]", name, takes_value(option) ? "=" : "",
                                   plain(option.get_description()));
                if (takes_value(option)) spec += fmt::format(":{}:{}", name, words);
            }
            cases += " \\\n            " + quoted(spec);
        });
        cases += " ;;\n";
    }
    return fmt::format(
        "#compdef glassgrad\n"
        "# zsh completion for glassgrad: source <(glassgrad completion zsh)\n"
        "_glassgrad() {{\n"
        "    local -a verbs\n"
        "    verbs=({})\n"
        "    if (( CURRENT == 2 )); then\n        _describe verb verbs\n        return\n    fi\n"
        "    shift words\n    (( CURRENT-- ))\n"
        "    case $words[1] in\n{}    esac\n"
        "}}\n"
        "if [[ $funcstack[1] == _glassgrad ]]; then\n    _glassgrad \"$@\"\n"
        "else\n    compdef _glassgrad glassgrad\nfi\n",
        verbs, cases);
}

std::string fish_completion(const CLI::App& app) {
    const auto quoted = [](std::string text) {
        return "'" + replaced(replaced(std::move(text), "\\", "\\\\"), "'", "\\'") + "'";
    };
    std::string out = "# fish completion for glassgrad: glassgrad completion fish | source\n";
    for (const CLI::App* verb : app.get_subcommands({})) {
        out += fmt::format("complete -c glassgrad -n __fish_use_subcommand -f -a {} -d {}\n",
                           verb->get_name(), quoted(verb->get_description()));
        for_options(*verb, [&](const std::string& name, const CLI::Option& option) {
            const std::vector<std::string> fit = values_of(option);
            if (name.empty() && fit.empty()) return;
            out += fmt::format("complete -c glassgrad -n '__fish_seen_subcommand_from {}'",
                               verb->get_name());
            if (!name.empty()) out += " -l " + name;
            if (!fit.empty()) {
                out += fmt::format(" -x -a '{}'", fmt::join(fit, " "));
            } else if (takes_value(option)) {
                out += " -r";
            }
            out += fmt::format(" -d {}\n", quoted(option.get_description()));
        });
    }
    return out;
}

/// Text as roff takes it: no line begins with a dot or a quote, and a hyphen is a minus.
std::string roff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
        if (c == '\\') {
            out += "\\e";
            continue;
        }
        if (c == '-') out += '\\';
        out += c;
    }
    return out;
}

std::string manual(const CLI::App& app) {
    std::string out = fmt::format(
        ".TH GLASSGRAD 1 \"\" \"glassgrad {}\"\n.SH NAME\nglassgrad \\- {}\n.SH SYNOPSIS\n"
        ".B glassgrad\n.I verb\n[options]\n.SH VERBS\n",
        GLASSGRAD_VERSION, roff(app.get_description()));
    for (const CLI::App* verb : app.get_subcommands({})) {
        out += ".SS " + roff(verb->get_name());
        for (const CLI::Option* each : verb->get_options()) {
            if (each->get_positional()) out += ' ' + roff(each->get_name(true));
        }
        out += '\n' + roff(verb->get_description()) + '\n';
        for (const CLI::Option* each : verb->get_options()) {
            const std::vector<std::string> fit = values_of(*each);
            out += fmt::format(
                ".TP\n.B {}\n{}{}\n",
                roff(each->get_positional() ? each->get_name(true) : each->get_name(false, true)),
                roff(each->get_description()),
                fit.empty() ? "" : roff(fmt::format(": {}", fmt::join(fit, ", "))));
            if (!each->get_default_str().empty()) {
                out += "(" + roff(each->get_default_str()) + ")\n";
            }
        }
        const std::string footer = verb->get_footer();
        if (!footer.empty()) out += ".PP\n.nf\n" + roff(footer) + "\n.fi\n";
    }
    return out +
           ".SH EXIT STATUS\n.TP\n.B 0\ndone, or the reader of the output has had enough\n.TP\n"
           ".B 1\nunreadable or malformed input, or a failed write\n.TP\n"
           ".B 2\na call or a setting that is not understood\n.TP\n.B 3\n"
           "training met a number that is none\n.TP\n.B 130, 143\nended by Ctrl\\-C or SIGTERM, "
           "after saving\n";
}

}  // namespace

Verb add_completion(CLI::App& app) {
    CLI::App* verb = app.add_subcommand("completion", "Prints what a shell needs to complete");
    const auto shell = std::make_shared<std::string>();
    verb->add_option("SHELL", *shell, "The shell")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    return {verb, [&app, shell] {
                print(*shell == "bash"  ? bash_completion(app)
                      : *shell == "zsh" ? zsh_completion(app)
                                        : fish_completion(app));
                return exit_ok;
            }};
}

Verb add_man(CLI::App& app) {
    CLI::App* verb = app.add_subcommand("man", "Prints the manual page");
    return {verb, [&app] {
                print(manual(app));
                return exit_ok;
            }};
}

}  // namespace glassgrad::tools
