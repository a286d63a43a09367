// completion and man: what the tree of verbs and options says, for a shell and for man(1).

#include "commands.hpp"
#include "output.hpp"

#include <glassgrad/version.hpp>

#include <CLI/CLI.hpp>

#include <memory>
#include <vector>

namespace glassgrad::tools {
namespace {

/// A verb's flags, without those of positional arguments.
std::string flags_of(const CLI::App& verb) {
    std::string flags;
    for (const CLI::Option* each : verb.get_options()) {
        for (const std::string& name : each->get_lnames()) flags += " --" + name;
    }
    return flags;
}

std::string completion(const CLI::App& app) {
    std::string verbs, cases;
    for (const CLI::App* verb : app.get_subcommands({})) {
        verbs += ' ' + verb->get_name();
        cases += fmt::format("        {}) words=\"{}\" ;;\n", verb->get_name(),
                             flags_of(*verb).substr(1));
    }
    return fmt::format(
        "# bash completion for glassgrad: source <(glassgrad completion bash)\n"
        "_glassgrad() {{\n"
        "    local words=\"{} --help\"\n"
        "    [ \"$COMP_CWORD\" -gt 1 ] && case \"${{COMP_WORDS[1]}}\" in\n{}    esac\n"
        "    COMPREPLY=($(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\"))\n"
        "}}\n"
        "complete -o default -F _glassgrad glassgrad\n",
        verbs.substr(1), cases);
}

/// Text as roff takes it: no line begins with a dot or a quote, and a hyphen is a minus.
std::string roff(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
        if (c == '\\' || c == '-') out += '\\';
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
            out += fmt::format(
                ".TP\n.B {}\n{}\n",
                roff(each->get_positional() ? each->get_name(true) : each->get_name(false, true)),
                roff(each->get_description()));
            if (!each->get_default_str().empty()) {
                out += "(" + roff(each->get_default_str()) + ")\n";
            }
        }
        const std::string footer = verb->get_footer();
        if (!footer.empty()) out += ".PP\n.nf\n" + roff(footer) + "\n.fi\n";
    }
    return out +
           ".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\nunreadable or malformed input, or a "
           "failed write\n.TP\n.B 2\na call or a setting that is not understood\n.TP\n.B 3\n"
           "training met a number that is none\n.TP\n.B 130, 143\nended by Ctrl\\-C or SIGTERM, "
           "after saving\n";
}

}  // namespace

Verb add_completion(CLI::App& app) {
    CLI::App* verb = app.add_subcommand("completion", "Prints what a shell needs to complete");
    const auto shell = std::make_shared<std::string>();
    verb->add_option("SHELL", *shell, "bash")->required()->check(CLI::IsMember({"bash"}));
    return {verb, [&app, shell] {
                print(completion(app));
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
